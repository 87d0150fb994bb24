# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DNS cookies: a query with a cookie in any state gets the answer that Unbound gives, from the kernel where it can answer and
from Unbound otherwise; also during a rollover of the secrets, and without hydnsd.

The comparison is with the same Unbound, asked by the same client while the kill switch is on, so that it makes cookies for this
client."""

import re
import signal
import subprocess
import time

import dns.edns
import dns.flags
import dns.message
import pytest
from conftest import kernel_path

from lab.client import exchange, query
from lab.compare import difference
from lab.cookies import CLIENT_LEN, WHOLE_LEN, cookie
from lab.network import CLIENT1, CLIENT1_MORE, SERVICE
from lab.run import wait_until

NAME = "www.lab.example"
CLIENT_COOKIE = bytes.fromhex("2464c4abcf10c957")
ACTIVE, STAGING, OTHER, NEXT = (bytes([i]) * 16 for i in (0x11, 0x22, 0x33, 0x44))
COOKIE, NSID, SUBNET, EXPIRE = 10, 3, 8, 9
GUARDED = CLIENT1_MORE[0]          # may ask with a valid cookie only
HOUR = 3600
CLOCK_REALTIME_COARSE = 5          # of linux/time.h; Python has no name for it


def whole(secret, family, age, address=None, **how):
    return cookie(secret, CLIENT_COOKIE, address or CLIENT1[family], time.time() - age, **how)


def forged(family):
    good = whole(ACTIVE, family, 10)
    return good[:-1] + bytes([good[-1] ^ 1])


# state: (cookie by family, is it answered in the kernel?, which statistics count it?)
STATES = {
    "client-only": (lambda f: CLIENT_COOKIE, True, "client"),
    "valid": (lambda f: whole(ACTIVE, f, 10), True, "valid"),
    "valid-reserved-bits": (lambda f: whole(ACTIVE, f, 10, reserved=b"\xab\xcd\xef"), True, "valid"),
    "valid-staging": (lambda f: whole(STAGING, f, 10), True, "valid"),
    "renewed": (lambda f: whole(ACTIVE, f, HOUR / 2 + 100), True, "valid"),
    "expired": (lambda f: whole(ACTIVE, f, HOUR + 100), True, "invalid"),
    "a-bit-ahead": (lambda f: whole(ACTIVE, f, -200), True, "valid"),
    "from-the-future": (lambda f: whole(ACTIVE, f, -400), True, "invalid"),
    "forged": (forged, True, "invalid"),
    "of-another-secret": (lambda f: whole(OTHER, f, 10), True, "invalid"),
    "of-another-address": (lambda f: whole(ACTIVE, f, 10, address="192.0.2.1"), True, "invalid"),
    "other-version": (lambda f: whole(ACTIVE, f, 10, version=2), True, "invalid"),
    "16-octets": (lambda f: whole(ACTIVE, f, 10)[:16], True, "client"),
    "23-octets": (lambda f: whole(ACTIVE, f, 10)[:23], True, "client"),
    "40-octets": (lambda f: whole(ACTIVE, f, 10) + bytes(16), True, "client"),
    "empty": (lambda f: b"", False, None),
    "7-octets": (lambda f: CLIENT_COOKIE[:7], False, None),
    "15-octets": (lambda f: whole(ACTIVE, f, 10)[:15], False, None),
    "41-octets": (lambda f: whole(ACTIVE, f, 10) + bytes(17), False, None),
}
VALID = "the client's valid cookie stands here"
# what else may stand in the OPT: (options, is it answered in the kernel?)
OPTIONS = {
    "padding": ([(12, bytes(60)), (COOKIE, VALID)], True),
    "keepalive": ([(COOKIE, VALID), (11, b"")], True),
    "keepalive-alone-with-data": ([(11, b"\0\x64")], True),
    "chain": ([(13, b"\7example\0"), (COOKIE, VALID)], True),
    "dau-dhu-n3u": ([(5, b"\x0d"), (6, b"\2"), (7, b"\1")], True),
    "key-tag": ([(14, b"\x4f\x66")], True),
    "extended-error": ([(15, b"\0\0")], True),
    "unassigned-experimental": ([(4, b"x"), (30000, b"yz"), (65001, b""), (65534, bytes(9))], True),
    "second-cookie": ([(COOKIE, VALID), (COOKIE, b"bad")], True),
    "eight-options": ([(65001, b"")] * 7 + [(COOKIE, VALID)], True),
    "nine-options": ([(65001, b"")] * 8 + [(COOKIE, VALID)], False),
    "nsid": ([(NSID, b""), (COOKIE, VALID)], False),
    "client-subnet": ([(COOKIE, VALID), (SUBNET, b"\0\1\x18\0\xc0\0\2")], False),
    "expire": ([(EXPIRE, b"")], False),
}


@pytest.fixture(scope="module")
def path(world):
    secrets = world.run.dir / "cookie-secrets"
    secrets.write_text(f"{ACTIVE.hex()}\n{STAGING.hex()}\n")
    server = ["answer-cookie: yes", f'cookie-secret-file: "{secrets}"', f"access-control: {GUARDED}/32 allow_cookie"]
    with kernel_path(world, unbound_options={"server": server}) as p:
        world.heat(p.daemon, NAME)
        yield p


def message(options, name=NAME, **how):
    q = query(name, "A", edns=True, **how)
    q.use_edns(0, q.ednsflags, 1232, options=[dns.edns.GenericOption(code, data) for code, data in options])
    return q.to_wire()


def cookie_of(wire):
    """The reply's cookie as it stands in its OPT, or None."""
    found = [o for o in dns.message.from_wire(wire, one_rr_per_rrset=False).options if o.otype == COOKIE]
    assert len(found) <= 1
    return found[0].to_wire() if found else None


class Paused:
    """Context manager: Unbound gets every query within the block."""

    def __init__(self, path):
        self.daemon = path.daemon

    def __enter__(self):
        self.daemon.call({"cmd": "pause"})

    def __exit__(self, *exc):
        self.daemon.call({"cmd": "resume"})


def both(path, wire, family=4, local=None):
    """(reply on the kernel path, reply of Unbound, was it the kernel's?): both made in the same second, also by the clock that
    moves with the tick, which is behind."""
    local = local or CLIENT1[family]    # of several
    while True:
        begun, before = int(time.clock_gettime(CLOCK_REALTIME_COARSE)), path.daemon.reasons()["ANSWERED"]
        ours = exchange(path.network.client1, SERVICE[family], wire, local=local)
        by_kernel = path.daemon.reasons()["ANSWERED"] - before
        with Paused(path):
            theirs = exchange(path.network.client1, SERVICE[family], wire, local=local)
        if int(time.time()) == begun:
            return ours, theirs, by_kernel


def check(path, wire, in_kernel, family=4, local=None):
    ours, theirs, by_kernel = both(path, wire, family, local)
    assert difference(ours, theirs) is None
    assert by_kernel == in_kernel, "who answered"
    return ours


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("dnssec", (False, True), ids=("plain", "do"))
def test_every_state(path, family, dnssec):
    path.world.heat(path.daemon, NAME, server=SERVICE[family], dnssec=dnssec)
    for state, (make, in_kernel, _) in STATES.items():
        sent, begun = make(family), int(time.time())
        got = cookie_of(check(path, message([(COOKIE, sent)], dnssec=dnssec), in_kernel, family))
        if not in_kernel:
            assert got is None, state
            continue
        assert len(got) == WHOLE_LEN and got[:CLIENT_LEN] == CLIENT_COOKIE, state
        made = int.from_bytes(got[12:16], "big")
        if got != sent:
            assert got == cookie(ACTIVE, CLIENT_COOKIE, CLIENT1[family], made) and begun - 1 <= made <= time.time(), state
        assert (got == sent) == (state in ("valid", "valid-reserved-bits", "a-bit-ahead")), state


@pytest.mark.parametrize("case", OPTIONS)
def test_other_options(path, case):
    options, in_kernel = OPTIONS[case]
    sent = [(code, whole(ACTIVE, 4, 10) if data is VALID else data) for code, data in options]
    got = cookie_of(check(path, message(sent), in_kernel))
    assert (got is not None) == any(data is VALID for _, data in options)


def test_no_cookie_asked_for_none_given(path):
    for wire in (query(NAME).to_wire(), message([])):
        assert cookie_of(check(path, wire, True)) is None


def test_dig_as_it_comes(path):
    """dig asks with EDNS, AD and a cookie of its own, and complains about a cookie that is not its own."""
    before = path.daemon.reasons()["ANSWERED"]
    out = subprocess.run(path.network.client1.command(["dig", f"@{SERVICE[4]}", NAME]), capture_output=True, text=True,
                         timeout=10, check=True).stdout
    assert re.search(r"^; COOKIE: [0-9a-f]{48} \(good\)$", out, re.M), out
    assert path.daemon.reasons()["ANSWERED"] == before + 1


def test_each_accepts_the_others_cookies(path):
    wire = message([(COOKIE, CLIENT_COOKIE)])
    ours = cookie_of(exchange(path.network.client1, SERVICE[4], wire))
    with Paused(path):
        theirs = cookie_of(exchange(path.network.client1, SERVICE[4], wire))
        assert cookie_of(exchange(path.network.client1, SERVICE[4], message([(COOKIE, ours)]))) == ours
    assert cookie_of(check(path, message([(COOKIE, theirs)]), True)) == theirs


def test_allow_cookie(path):
    """With a valid cookie the kernel answers the guarded client; without, Unbound refuses it."""
    for state, (make, _, kind) in STATES.items():
        sent = cookie(ACTIVE, CLIENT_COOKIE, GUARDED, time.time() - 10) if state == "valid" else make(4)
        check(path, message([(COOKIE, sent)]), state == "valid", local=GUARDED)
    check(path, message([]), False, local=GUARDED)
    refused = check(path, query(NAME).to_wire(), False, local=GUARDED)
    assert dns.message.from_wire(refused, ignore_trailing=True).flags & dns.flags.TC


def test_statistics(path):
    kinds = ("valid", "client", "invalid")
    before = path.unbound.stats()
    own = path.unbound.received()
    asked = {kind: 0 for kind in kinds}
    for make, in_kernel, kind in STATES.values():
        if in_kernel and kind:
            exchange(path.network.client1, SERVICE[4], message([(COOKIE, make(4))]))
            asked[kind] += 1
    after = path.unbound.stats()
    assert path.unbound.received() == own, "all of these are the kernel's"
    for kind in kinds:
        key = f"total.num.queries_cookie_{kind}"
        assert after[key] - before[key] == asked[kind], kind


def made_by(path):
    """The secret of the cookie in the kernel's answer, or None when Unbound answered."""
    own = path.unbound.received()
    got = cookie_of(exchange(path.network.client1, SERVICE[4], message([(COOKIE, CLIENT_COOKIE)])))
    makers = [s for s in (ACTIVE, STAGING, OTHER, NEXT)
              if got == cookie(s, CLIENT_COOKIE, CLIENT1[4], int.from_bytes(got[12:16], "big"))]
    return makers[0] if path.unbound.received() == own else None, makers[0]


def test_rollover(path):
    """When a command has returned, kernel and Unbound use the new secrets."""
    control = path.unbound.control

    def accepted(*secrets):
        for secret in (ACTIVE, STAGING, OTHER, NEXT):
            key = f"total.num.queries_cookie_{'valid' if secret in secrets else 'invalid'}"
            before, wire = path.unbound.stats()[key], message([(COOKIE, whole(secret, 4, 10))])
            check(path, wire, True)
            exchange(path.network.client1, SERVICE[4], wire)
            assert path.unbound.stats()[key] > before
    accepted(ACTIVE, STAGING)
    control("add_cookie_secret", NEXT.hex())
    assert made_by(path) == (ACTIVE, ACTIVE)
    accepted(ACTIVE, NEXT)
    control("activate_cookie_secret")
    assert made_by(path) == (NEXT, NEXT)
    accepted(NEXT, ACTIVE)
    control("drop_cookie_secret")
    assert made_by(path) == (NEXT, NEXT)
    accepted(NEXT)


def test_rollover_without_hydnsd(path):
    """The program outlives hydnsd, former secrets do not: queries with cookies of these pass meanwhile."""
    path.unbound.control("add_cookie_secret", OTHER.hex())
    path.daemon.stop(signal.SIGKILL)
    assert made_by(path) == (NEXT, NEXT)
    path.unbound.control("activate_cookie_secret")
    assert made_by(path) == (None, OTHER)
    own = path.unbound.received()
    assert exchange(path.network.client1, SERVICE[4], query(NAME).to_wire())
    assert path.unbound.received() == own, "without a cookie the kernel goes on"
    path.daemon.start()
    wait_until(path.daemon.resolver_ready, 10, "Unbound to come back to hydnsd")
    path.world.heat(path.daemon, NAME)
    assert made_by(path) == (OTHER, OTHER)


def test_secrets_are_shown_nowhere(path):
    shown = [path.daemon.ctl(*words).stdout for words in (["status"], ["stats"], ["rules"], ["--json", "status"])]
    shown += [log.read_text(errors="replace") for log in path.world.run.dir.rglob("*.log")]
    for secret in (ACTIVE, STAGING, OTHER, NEXT):
        assert not any(secret.hex() in text for text in shown)
