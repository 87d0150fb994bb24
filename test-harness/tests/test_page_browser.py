# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The page of hydns-metrics in a real browser: what it shows of a running hydnsd, by keyboard, on a narrow screen, in the dark, and
with names that would rather run than be read."""

import os
from pathlib import Path

import pytest
from metrics_paths import metrics_path

from lab.browser import Browser
from lab.client import ask
from lab.fake_hydnsd import FakeHydnsd
from lab.metrics import PAGE, Metrics
from lab.network import SERVICE
from lab.run import SOON, wait_until

NAME = "www.lab.example"
COMMANDS = ("status", "stats", "top", "pending")
OWNED = "<script>document.title='owned'</script><img src=x onerror=\"window.owned=1\"><b>\x1b[2J\x07\u202e&lt;{{1}}"
SEEN = "<script>document.title='owned'</script><img src=x onerror=\"window.owned=1\"><b>\\u001b[2J\\u0007\\u202e&lt;{{1}}"

# The contrast of each text with what is behind it, by WCAG 2: [ratio, text] of those below 4.5.
CONTRAST = """(() => {
  const parts = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => parts(c).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { const c = getComputedStyle(e).backgroundColor; return parts(c)[3] === 0 ? behind(e.parentElement) : c; };
  const weak = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walk.nextNode());) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.getClientRects().length || e.closest('script, style, noscript, .unseen, .skip')) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) weak.push([ratio.toFixed(2), n.data.trim()]);
  }
  return weak;
})()"""


@pytest.fixture(scope="module")
def path(world):
    """With a hot name, and a query that passes."""
    with metrics_path(world, page=PAGE) as p:
        world.heat(p.daemon, NAME)
        yield p


@pytest.fixture(scope="module")
def browser(world):
    with Browser(world, world.network.resolver) as b:
        yield b


@pytest.fixture
def page(path, browser):
    """The browser, with the page and figures in it."""
    browser.look(1280)
    browser.open(path.metrics.page.url)
    browser.wait(f"document.querySelector('#names')?.textContent.includes('{NAME}')", f"{NAME} to be on the page")
    return browser


def text(browser, selector):
    return browser.js(f"document.querySelector({selector!r}).innerText")


# -- what it shows ---------------------------------------------------------------------------------------------
def test_what_it_shows(path, page):
    def passes():
        ask(path.network.client1, SERVICE[4], NAME, cd=True)
        return "DNS_UNUSUAL" in text(page, "#passing")
    wait_until(passes, SOON, "a reason to be there")
    assert "header flags or counts other than an ordinary query's" in text(page, "#passing")
    row = page.js(f"[...document.querySelectorAll('#names tr')].find((r) => r.innerText.includes('{NAME}')).innerText")
    assert "kernel" in row and "of 5 min" in row
    assert text(page, "#state") == "answers in the kernel" and "nothing to mend" in text(page, "#health-title")
    status = path.daemon.call({"cmd": "status"})
    for r in status["resolvers"]:
        assert f"{r['identity']} {r['version']}" in text(page, "#resolvers") and all(s in text(page, "#resolvers") for s in r["services"])
    assert text(page, "#rate") != "–" and text(page, "#share").endswith("%") and page.js("document.title").endswith("hyDNS")
    page.wait("document.querySelector('#all-line').getAttribute('d').includes('L')", "a line in the chart")
    assert not page.said


def test_state_and_health_follow(path, page):
    """A pause, with its mend; and hydnsd away and back."""
    path.daemon.ctl("pause")
    try:
        page.wait("document.querySelector('#state').innerText.startsWith('paused')", "the pause to be shown")
        assert "hydnsctl resume" in text(page, "#to-mend")
    finally:
        path.daemon.ctl("resume")
    page.wait("document.querySelector('#state').innerText === 'answers in the kernel'", "the pause to be over")
    with path.daemon.stopped():
        page.wait("document.querySelector('#state').innerText === 'hydnsd does not answer'", "hydnsd to be missed")
        assert page.js("document.body.classList.contains('stale')") and "daemon" in text(page, "#to-mend")
    page.wait("document.querySelector('#state').innerText === 'answers in the kernel'", "hydnsd to be back")
    assert not page.said


def test_nothing_is_asked_of_anybody_else(path, page):
    """All requests go to where the page is from, and its policy refuses others."""
    page.wait("performance.getEntriesByType('resource').length > 2", "some requests")
    assert set(page.requests) == {path.metrics.page.url, path.metrics.page.url + "live.json"}
    refused = page.js("""new Promise((done) => {
      const seen = [];
      document.addEventListener('securitypolicyviolation', (e) => { seen.push(e.effectiveDirective); if (seen.length === 5) done(seen.sort()); });
      fetch('http://127.0.0.1:10953/metrics').catch(() => 0);
      new Image().src = 'http://127.0.0.1:10953/x.png';
      const script = document.createElement('script'); script.textContent = 'window.owned = 1'; document.body.append(script);
      document.body.insertAdjacentHTML('beforeend', '<i style="color:red" onclick="1">x</i>');
    })""")
    assert refused == ["connect-src", "img-src", "script-src-attr", "script-src-elem", "style-src-attr"] and page.js("window.owned") is None


# -- names that are hostile --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def hostile(path, tmp_path_factory):
    """A page whose every text from hydnsd is hostile, and long."""
    def walk(thing, key=""):
        if isinstance(thing, dict):
            return {k: walk(v, k) for k, v in thing.items()}
        if isinstance(thing, list):
            return [walk(v, key) for v in thing]
        return OWNED + "x" * 900 if isinstance(thing, str) and key not in ("state", "where") else thing
    replies = {c: {k: v for k, v in path.daemon.call({"cmd": c}).items() if k != "ok"} for c in COMMANDS}
    replies["status"]["resolvers"][0] |= {"notes": ["a"], "missing": [{"service": "s", "why": "w"}], "no_rings": "n"}
    replies["pending"] = {"waiting": 7, "questions": [{"name": "n", "type": "A", "variant": 3, "authority": 0, "identity": "i", "waiting": 7, "upstream": "u",
                                                       "age_ms": 100}]}
    with FakeHydnsd(tmp_path_factory.mktemp("hostile") / "control", walk(replies)) as hydnsd, \
            Metrics(path.world, path.world.network.resolver, hydnsd.path, listen="127.0.0.1:10973", page="127.0.0.1:10974") as metrics:
        yield metrics.page


def open_hostile(browser, hostile, **screen):
    browser.look(**screen)
    browser.open(hostile.url)
    browser.wait("document.querySelectorAll('#pending tr').length === 1", "the figures")


def test_hostile_texts_are_text(browser, hostile):
    """In every place: nothing runs, nothing becomes an element, and what would act on the text around it is written out."""
    open_hostile(browser, hostile, width=1280)
    for place in ("#names", "#pending", "#resolvers", "#to-mend", "#about"):
        assert SEEN in browser.js(f"document.querySelector('{place}').textContent"), place
    assert browser.js("[window.owned, document.title.includes('owned'), document.querySelectorAll('img, b b, main script').length]") == [None, False, 0]
    assert not browser.js("/[\\u0000-\\u0009\\u000b-\\u001f\\u202e]/.test(document.querySelector('main').textContent)")
    assert set(browser.requests) == {hostile.url, hostile.url + "live.json"} and not browser.said


def test_a_name_that_a_client_asks_for(path, page):
    """The whole way: from a query, through the resolver, a rule and hydnsd."""
    name = r"\<script\>window\.owned\=1\<\/script\>\007\027\255.wild.lab.example"
    path.world.heat(path.daemon, name)
    page.wait("document.querySelector('#names').textContent.includes('script')", "the name to be on the page")
    assert page.js("[window.owned, document.querySelectorAll('main script').length]") == [None, 0] and not page.said


# -- screens, and who looks at them --------------------------------------------------------------------------------
@pytest.mark.parametrize("width", (360, 768, 1280))
def test_nothing_is_wider_than_the_screen(browser, hostile, width):
    open_hostile(browser, hostile, width=width)
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.js("document.documentElement.scrollWidth") <= width
    out = browser.js("[...document.querySelectorAll('main *')].filter((e) => e.getClientRects().length && !e.closest('.unseen, thead') &&"
                     " e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className)")
    assert not out


@pytest.mark.parametrize("dark", (False, True), ids=("light", "dark"))
@pytest.mark.parametrize("width", (360, 1280))
def test_every_text_can_be_read(browser, hostile, width, dark):
    open_hostile(browser, hostile, width=width, dark=dark, still=True)
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert browser.js(CONTRAST) == []
    level = browser.js("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]")
    assert (level < 60) == dark and (level > 200) != dark


def test_still_for_who_wants_it(page):
    moving = "getComputedStyle(document.querySelector('.bar'), '::after').transitionDuration"
    assert page.js(moving) != "0s"
    page.look(1280, still=True)
    assert page.js(moving) == "0s"


def focus(browser):
    return browser.js("document.activeElement.id || document.activeElement.className || document.activeElement.tagName")


def test_by_keyboard(page):
    """Everything that can be done, in the order of the page; and figures that come meanwhile take no focus away."""
    page.press("Tab")
    assert focus(page) == "skip"
    page.press("Tab")
    assert focus(page) == "hold"
    page.press(" ")
    page.wait("document.querySelector('#hold').getAttribute('aria-pressed') === 'true'", "it to be held")
    page.press(" ")
    page.wait("document.querySelector('#hold').getAttribute('aria-pressed') === 'false'", "it to go on")
    page.press("Tab")
    assert focus(page) == "in-order-sum"
    page.press("Enter")
    page.wait("document.querySelector('#in-order-box').open", "the findings to be open")
    before = len(page.requests)
    wait_until(lambda: page.js("1") and len(page.requests) > before + 1, SOON, "figures to come")
    assert focus(page) == "in-order-sum" and page.js("document.querySelector('#in-order-box').open")
    page.js("document.querySelector('.skip').focus()")
    page.press("Enter")
    page.wait("document.activeElement.id === 'main'", "the focus to be in the figures")


def test_for_who_does_not_see_it(page):
    """Each table has a caption and titles, each section a heading, the chart a description, and the state is announced when it changes."""
    assert page.js("[...document.querySelectorAll('table')].every((t) => t.caption.textContent && [...t.tHead.querySelectorAll('th')].every((h) => h.scope))")
    assert page.js("[...document.querySelectorAll('section')].every((s) => document.getElementById(s.getAttribute('aria-labelledby')).textContent)")
    page.wait("document.querySelector('#chart').getAttribute('aria-label').includes('Queries a second')", "the chart's description")
    assert page.js("document.documentElement.lang") == "en" and page.js("document.querySelector('#state').getAttribute('role')") == "status"
    assert page.js("[...document.querySelectorAll('button, summary')].every((b) => b.textContent.trim())")


def test_pictures(page, tmp_path):
    """For whoever changes the page to look at, in the folder that HYDNS_PICTURES names; in the dark it is another one."""
    where = Path(os.environ.get("HYDNS_PICTURES", tmp_path))
    for name, width, dark in (("light", 1280, False), ("dark", 1280, True), ("narrow", 360, False), ("narrow-dark", 360, True)):
        page.look(width, dark=dark, still=True)
        page.screenshot(where / f"{name}.png")
    assert len({(where / f"{name}.png").read_bytes() for name in ("light", "dark", "narrow", "narrow-dark")}) == 4
