// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
// Asks for live.json once a second and shows it. Every text goes into the page as text: names are chosen by whoever asks the resolver.
"use strict";
(() => {
  const PERIOD_MS = 1000, LATE_MS = 8000, HISTORY_MS = 300000, STORE = "hydns-history", WIDTH = 600, HEIGHT = 100;
  const $ = (id) => document.getElementById(id);
  let history = [], held = false, timer = 0;

  // -- words ---------------------------------------------------------------------------------------------------
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const number = (n, digits) => n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const rate = (n) => n === 0 || n >= 100 ? whole.format(n) : number(n, n < 10 ? 2 : 1);
  const count = (n, one, many) => whole.format(n) + " " + (n === 1 ? one : many || one + "s");
  const percent = (part, all) => all > 0 ? number(100 * part / all, part < all && part > 0.999 * all ? 2 : 1) + " %" : "–";

  const parts = (n, unit, rest, smaller) => n + " " + unit + (rest ? " " + rest + " " + smaller : "");

  function duration(ms) {
    const s = Math.floor(ms / 1000);
    if (ms < 1000) return Math.round(ms) + " ms";
    if (s < 60) return s + " s";
    if (s < 3600) return parts(Math.floor(s / 60), "min", s % 60, "s");
    if (s < 86400) return parts(Math.floor(s / 3600), "h", Math.floor(s / 60) % 60, "min");
    return parts(Math.floor(s / 86400), "d", Math.floor(s / 3600) % 24, "h");
  }

  function octets(n) {
    const unit = ["octets", "KiB", "MiB", "GiB", "TiB"];
    let u = 0;
    while (n >= 1024 && u < 4) { n /= 1024; u++; }
    return number(n, u ? 1 : 0) + " " + unit[u];
  }

  // What would act on the text around it, or be unseen, is written out.
  const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
  const clean = (s) => String(s).replace(CONTROL, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

  // -- elements ------------------------------------------------------------------------------------------------
  // Nothing is touched that says the same already: so focus, selection and what is open stay.
  function say(element, text) {
    const now = clean(text);
    if (element.textContent !== now) element.textContent = now;
    return element;
  }

  function mark(element, name, value) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }

  function make(tag, name, ...inner) {
    const e = document.createElement(tag);
    if (name) e.className = name;
    e.append(...inner);
    return e;
  }

  // A list with an element for each item: build() makes one, fill() says the item in it.
  function list(parent, items, build, fill) {
    while (parent.children.length > items.length) parent.lastElementChild.remove();
    items.forEach((item, i) => {
      if (i === parent.children.length) parent.append(build());
      fill(parent.children[i], item);
    });
  }

  const show = (id, truth) => { $(id).hidden = !truth; };

  function bar(element, part) {
    const now = Math.max(0, Math.min(100, 100 * part)).toFixed(1) + "%";
    if (element.style.getPropertyValue("--part") !== now) element.style.setProperty("--part", now);
  }

  // -- now -----------------------------------------------------------------------------------------------------
  function area(upper, lower, x, y) {
    const along = history.map((p) => x(p) + " " + y(upper(p)));
    const back = history.map((p) => x(p) + " " + y(lower(p))).reverse();
    return along.length > 1 ? "M" + along.concat(back).join("L") + "Z" : "";
  }

  function drawChart() {
    const end = history.length ? history[history.length - 1].t : 0;
    const most = Math.max(1, ...history.map((p) => p.a + p.p));
    const x = (p) => (WIDTH - (end - p.t) / HISTORY_MS * WIDTH).toFixed(1);
    const y = (n) => (HEIGHT - n / most * (HEIGHT - 4)).toFixed(1);
    const all = (p) => p.a + p.p;

    mark($("answered-area"), "d", area((p) => p.a, () => 0, x, y));
    mark($("passed-area"), "d", area(all, (p) => p.a, x, y));
    mark($("all-line"), "d", history.length > 1 ? "M" + history.map((p) => x(p) + " " + y(all(p))).join("L") : "");
    say($("most"), history.length > 1 ? "most " + rate(most) : "");
    mark($("chart"), "aria-label", "Queries a second in the last 5 minutes: at most " + rate(most));
  }

  function keep(answered, passed) {
    const t = Date.now();
    history = history.filter((p) => t - p.t < HISTORY_MS && p.t <= t);
    history.push({ t, a: answered, p: passed });
    try {
      sessionStorage.setItem(STORE, JSON.stringify(history));
    } catch (e) { /* no room, or not allowed: a reload begins anew */ }
  }

  function recall() {
    try {
      history = JSON.parse(sessionStorage.getItem(STORE) || "[]").filter((p) => p.t > 0 && p.a >= 0 && p.p >= 0);
    } catch (e) {
      history = [];
    }
  }

  function showNow(v) {
    const answered = v.answered_per_s, passed = v.passed_per_s;
    if (answered === null || passed === null) return;
    keep(answered, passed);
    say($("rate"), rate(answered + passed));
    say($("share"), percent(answered, answered + passed));
    say($("answered"), rate(answered) + "/s");
    say($("passed"), rate(passed) + "/s");
    drawChart();
    document.title = percent(answered, answered + passed) + " · hyDNS";
  }

  function tiles(v) {
    const s = v.status, up = s.interfaces.filter((i) => i.attached), lanes = s.resolvers.flatMap((r) => r.lanes);
    const waiting = lanes.reduce((sum, l) => sum + l.waiting, 0), dropped = lanes.reduce((sum, l) => sum + l.dropped, 0);
    return [
      [whole.format(s.rules), "rules, of " + (s.fitting > 0 && s.fitting < s.capacity ? whole.format(s.fitting) + " that fit" : "at most " + whole.format(s.capacity))],
      [whole.format(v.pending.waiting), "queries pending, " + count(v.pending.questions.length, "question")],
      [whole.format(lanes.length), "packet ring lanes, " + whole.format(waiting) + " frames waiting, " + whole.format(dropped) + " dropped"],
      [up.length + " of " + s.interfaces.length, "interfaces attached" + (up.length ? ": " + up.map((i) => i.name).join(", ") : "")],
      [octets(s.memory_bytes), "of maps, " + octets(s.daemon_bytes) + " in hydnsd"],
    ];
  }

  function showTiles(v) {
    list($("tiles"), tiles(v), () => make("li", "", make("b"), make("span")), (li, [figure, what]) => {
      say(li.children[0], figure);
      say(li.children[1], what);
    });
  }

  // -- state and health ----------------------------------------------------------------------------------------
  const RANK = { fail: 0, warn: 1, skip: 2, ok: 3 }, LOOK = { fail: "fail", warn: "warn", skip: "", ok: "good" };

  function state(text, look) {
    $("state").className = "pill " + look;
    say($("state"), text);
  }

  function showState(v) {
    const worst = v.health.reduce((w, f) => RANK[f.state] < RANK[w] ? f.state : w, "ok");
    if (!v.up) state("hydnsd does not answer", "fail");
    else if (v.status.paused) state("paused: every query goes to the resolver", "warn");
    else if (worst === "fail") state("something is to mend", "fail");
    else state("answers in the kernel", "good");
    say($("about"), v.up ? "hydnsd " + v.status.version + ", up " + duration(1000 * v.status.uptime_s) : v.why);
  }

  function newFinding() {
    const text = make("div", "", make("span", "what"), make("bdi"));
    return make("li", "", make("span", "mark"), text, make("p", "mend", "mend: ", make("code")));
  }

  function fillFinding(li, f) {
    const [what, text] = li.children[1].children;
    li.children[0].className = "mark " + LOOK[f.state];
    say(li.children[0], f.state);
    say(what, f.check + (f.subject ? " " + f.subject : ""));
    say(text, f.finding);
    li.children[2].hidden = !f.mend;
    say(li.children[2].lastElementChild, f.mend || "");
  }

  function showHealth(v) {
    const sorted = v.health.slice().sort((a, b) => RANK[a.state] - RANK[b.state]);
    const bad = sorted.filter((f) => f.state === "fail" || f.state === "warn"), good = sorted.filter((f) => !bad.includes(f));
    list($("to-mend"), bad, newFinding, fillFinding);
    list($("in-order"), good, newFinding, fillFinding);
    show("in-order-box", good.length > 0);
    say($("in-order-sum"), count(good.length, "finding") + " in order");
    say($("health-sum"), bad.length ? count(bad.length, "thing") + " to look at" : "nothing to mend");
  }

  // -- tables --------------------------------------------------------------------------------------------------
  function variant(v) {
    return [v & 1 ? "DO" : "", v & 2 ? "no RD" : ""].filter((t) => t).join(", ");
  }

  const question = (q) => q.type + (q.variant ? " " + variant(q.variant) : "");
  const cell = (label) => { const td = make("td", "number"); td.dataset.label = label; return td; };
  const nameCell = () => make("td", "name", make("bdi"), make("span", "tag"));

  function fillName(td, q) {
    say(td.children[0], q.name);
    say(td.children[1], question(q));
  }

  function showPassing(v) {
    const seconds = v.top.window_ms / 1000, all = v.top.answered + v.top.passed;
    list($("passing"), v.passing, () => make("tr", "", make("td", "", make("span"), " ", make("code"), make("span", "bar")), make("td", "number"),
      make("td", "number")), (tr, r) => {
      const [text, code, part] = tr.children[0].children;
      say(text, r.text || r.reason);
      say(code, r.reason);
      bar(part, r.queries / v.top.passed);
      say(tr.children[1], percent(r.queries, all));
      say(tr.children[2], rate(r.queries / seconds));
    });
    show("no-passing", !v.passing.length);
    $("passing").parentElement.hidden = !v.passing.length;
    say($("passing-sum"), "in the last " + duration(v.top.window_ms));
  }

  function newNameRow() {
    const figure = cell("");
    figure.append(make("div", "rate", make("span", "bar"), make("span"), make("span", "unit", "/s")));
    return make("tr", "", nameCell(), figure, make("td", "where", make("span", "by"), make("bdi", "why")), cell("age"), cell("TTL left"),
      cell("answers"));
  }

  function fillNameRow(tr, n, hottest) {
    const [name, figure, where, age, left, hits] = tr.children, kernel = n.where === "kernel", [part, text] = figure.firstChild.children;
    fillName(name, n);
    say(text, rate(n.rate));
    bar(part, n.rate / hottest);
    where.children[0].className = kernel ? "by kernel" : "by";
    say(where.children[0], kernel ? "kernel" : "resolver");
    say(where.children[1], n.why);
    say(age, "age_ms" in n ? duration(n.age_ms) : "");
    say(left, "expires_in_ms" in n ? duration(n.expires_in_ms) + " of " + duration(1000 * n.ttl) : "");
    say(hits, "hits" in n ? whole.format(n.hits) : "");
  }

  function showNames(v) {
    const names = v.top.names, hottest = names.length ? names[0].rate : 1;
    list($("names"), names, newNameRow, (tr, n) => fillNameRow(tr, n, hottest));
    show("no-names", !names.length);
    $("names").parentElement.hidden = !names.length;
    say($("names-sum"), names.length ? whole.format(names.filter((n) => n.where === "kernel").length) + " of " + names.length + " in the kernel" : "");
  }

  function showPending(v) {
    list($("pending"), v.pending.questions, () => make("tr", "", nameCell(), cell("waiting"), cell("for"), make("td", "")), (tr, q) => {
      fillName(tr.children[0], q);
      say(tr.children[1], whole.format(q.waiting));
      say(tr.children[2], duration(q.age_ms));
      say(tr.children[3], q.identity + (q.upstream ? ", which asks " + q.upstream : ""));
    });
    show("no-pending", !v.pending.questions.length);
    $("pending").parentElement.hidden = !v.pending.questions.length;
    say($("pending-sum"), v.pending.waiting ? count(v.pending.waiting, "query", "queries") + " waiting" : "");
  }

  // -- resolvers -------------------------------------------------------------------------------------------------
  function ringTexts(r, counts) {
    const frames = r.lanes.map((l) => l.interface + " queue " + l.queue + (l.open ? "" : ", not open yet") + ": " + count(l.threads, "thread") + ", " +
      whole.format(l.waiting) + " waiting, " + whole.format(l.free) + " free, " + whole.format(l.dropped) + " dropped");
    if (!r.lanes.length) return [r.no_rings ? "none: " + r.no_rings : "none"];
    return frames.concat(counts ? [whole.format(counts.packet_rings.queries) + " queries in all"] : [],
      r.no_upstream_rings ? ["none to upstream: " + r.no_upstream_rings] : []);
  }

  function forwardingText(f) {
    const usable = f.upstreams.filter((u) => u.usable).length;
    return f.zones.length ? f.zones.slice(0, 4).join(", ") + (f.zones.length > 4 ? " and " + (f.zones.length - 4) + " more" : "") + "; " + usable + " of " +
      f.upstreams.length + " servers usable, " + count(f.open, "request") + " open" : "";
  }

  function facts(r, counts) {
    const beat = r.heartbeat_age_ms;
    return [
      ["answers", counts ? whole.format(counts.answered) + " by the kernel, " + whole.format(counts.queries_seen) + " queries reached it" : ""],
      ["rules", whole.format(r.rules) + ", epoch " + r.epoch],
      ["heartbeat", beat === null ? "none" : duration(beat) + " ago"],
      ["asked at", r.services.join(", ") || "nowhere: it has registered no address"],
      ["missing", ...r.missing.map((m) => m.service + ": " + m.why)],
      ["clients", count(r.clients_allowed, "prefix", "prefixes") + " may be answered, of " + whole.format(r.acl_entries)],
      ["rings", ...ringTexts(r, counts)],
      ["parked", r.parking.most ? whole.format(r.parking.waiting) + " of at most " + whole.format(r.parking.most) : ""],
      ["forwards", forwardingText(r.forwarding)],
      ["notes", ...r.notes],
    ].filter(([, text]) => text);
  }

  function fillResolver(card, r, counts) {
    const [name, tag] = card.children[0].children;
    say(name, r.identity ? r.identity + " " + r.version : "a resolver that has not connected again");
    tag.className = "pill " + (r.state === "ready" ? "good" : "warn");
    say(tag, r.state);
    list(card.children[1], facts(r, counts), () => make("div", "", make("dt"), make("dd")), (row, [what, ...texts]) => {
      say(row.children[0], what);
      list(row.children[1], texts, () => make("p"), say);
    });
  }

  function showResolvers(v) {
    const counts = new Map(v.stats.resolvers.map((r) => [r.authority, r]));
    list($("resolvers"), v.status.resolvers, () => make("article", "card", make("h3", "", make("bdi"), make("span", "pill")), make("dl")),
      (card, r) => fillResolver(card, r, counts.get(r.authority)));
    show("no-resolvers", !v.status.resolvers.length);
    say($("resolvers-sum"), v.status.resolvers.length > 1 ? whole.format(v.status.resolvers.length) : "");
  }

  // -- all of it ---------------------------------------------------------------------------------------------------
  function showAll(v) {
    showState(v);
    showHealth(v);
    if (v.up) [showNow, showTiles, showPassing, showNames, showPending, showResolvers].forEach((part) => part(v));
    document.body.classList.toggle("stale", !v.up);
  }

  async function ask() {
    const late = new AbortController(), limit = setTimeout(() => late.abort(), LATE_MS);
    let view = null;
    try {
      const reply = await fetch("live.json", { signal: late.signal, cache: "no-store", credentials: "omit" });
      view = await reply.json();
      showAll(view);
    } catch (e) {
      document.body.classList.add("stale");
      state(view ? "cannot be shown: hydnsd is of another version" : "hydns-metrics does not answer", "fail");
    } finally {
      clearTimeout(limit);
    }
  }

  async function turn() {
    clearTimeout(timer);
    timer = 0;
    if (!held && !document.hidden) await ask();
    if (!timer) timer = setTimeout(turn, PERIOD_MS);
  }

  $("hold").addEventListener("click", () => {
    held = !held;
    mark($("hold"), "aria-pressed", String(held));
    if (!held) turn();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
  recall();
  turn();
})();
