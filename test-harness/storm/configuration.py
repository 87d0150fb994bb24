# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Disruptions of the configuration: access lists, views, zones and local data change, and change back. The ledger has a Regime of each:
what the resolver gives to whom from when on. A change counts once its command has returned and the resolver itself shows it."""

import time
from contextlib import contextmanager
from ipaddress import ip_address

import dns.rcode

from lab.client import ask
from lab.network import CLIENT1, CLIENT2, RESOLVER_HOPS, SERVICE
from lab.run import SOON, replaced, wait_until
from lab.servers import Unbound

from . import faults, zone
from .judge import OfResolver
from .ledger import Flush, Regime
from .servers import everything

AWAY = 1.5                        # seconds at most that a change stands
NUMBERS = (77, 78)                # of data and serials; the second after a zone's change
CLIENTS = {"r1": CLIENT1, "r2": CLIENT2}
ALLOWED = "10.53.0.0/16; fd53::/16;"       # of BIND; lab/servers.py
UNBOUND_ALLOWED = "    access-control: 10.53.0.0/16 allow\n"
ADDED, OTHER = "added.zone", "other.zone"


def _address(rdtype, number):
    return f"192.0.2.{number}" if rdtype == "A" else f"2001:db8:{number}::1"


def _octets(rdtype, number):
    return ip_address(_address(rdtype, number)).packed.hex()


def _gives_data(number, aliases=True):
    """Of zones and views below: their addresses, and a denial of other types with their serial. aliases: they are followed into other
    zones."""
    def given(question, answer):
        if question.alias and not aliases:
            return answer.rcode == dns.rcode.NOERROR and answer.rdata and zone.stamp_of(answer.rdata) is None
        if question.key.rdtype == "TXT":
            return answer.rcode == dns.rcode.NOERROR and answer.first_ttl is None and answer.rdata in (None, f"{number:08x}")
        return answer.rcode == dns.rcode.NOERROR and answer.rdata == _octets(question.key.rdtype, number)
    return given


def _gives_code(rcode):
    return lambda question, answer: answer.rcode == rcode and answer.first_ttl is None


def _gives_refusal(question, answer):
    """Unbound's has no question."""
    return answer.hops == RESOLVER_HOPS and answer.rcode in (dns.rcode.REFUSED, -1)


def _zone_text(origin, number, *, wildcard=False):
    """With a wildcard for whatever is asked for in it, or with data of its own name."""
    lines = [f"$ORIGIN {origin}", f"@ 30 SOA ns hostmaster {number} 3600 900 604800 30", "@ 30 NS ns", "ns 30 A 192.0.2.1"]
    return "\n".join([*lines, *(f"{'*' if wildcard else '@'} 30 {t} {_address(t, number)}" for t in ("A", "AAAA"))]) + "\n"


def _draw_client(d):
    """(link, family, address) of one of the clients."""
    link, family = d.rng.choice(sorted(CLIENTS)), d.rng.choice((4, 6))
    return link, family, CLIENTS[link][family]


def _shown_by_resolver(d, name, rdtype, text):
    """Waits until the resolver itself gives this: the question does not come by the program."""
    def shown():
        reply = ask(d.world.network.resolver, SERVICE[4], name, rdtype, local=SERVICE[4], timeout=0.5)
        return reply and any(text in str(rrset) for rrset in reply.answer)
    wait_until(shown, SOON, f"the resolver to have {text} for {name}")


class _Change:
    """begin: when the command was given; stands(): it has returned; ends(): the command that undoes it is given."""

    def __init__(self, d, why, concerns, gives, link=None, family=None, since=None):
        self.d, self.words = d, (why, link, family, concerns, gives)
        self.begin, self.stood, self.ending = since or time.monotonic_ns(), None, None

    def stands(self):
        self.stood = time.monotonic_ns()

    def ends(self):
        self.ending = time.monotonic_ns()

    def over(self):
        why, link, family, concerns, gives = self.words
        self.d.ledger.regimes.append(Regime(why, self.begin, self.stood, self.ending, time.monotonic_ns(), link, family, concerns,
                                            gives))


@contextmanager
def _changed(d, why, concerns, gives, undo, **client):
    """The block makes the change, or has begun to make it at the time since. Gives what knows when the undoing begins: ending."""
    d.detail = why
    change = _Change(d, why, concerns, gives, **client)
    yield change
    change.stands()
    d.wait(AWAY)
    change.ends()
    undo()
    change.over()


def _below(owner):
    """Of questions whose data are this name's, also by an alias."""
    return lambda question: question.target.owner == owner


def _of(owner):
    return lambda question: question.key.owner == owner


def _everything(question):
    return True


# -- the configuration's file ----------------------------------------------------------------------------
def _configure(d, text):
    """Returns when no answer is by the former configuration."""
    if d.fault == faults.FLUSH:
        return
    d.resolver.config.write_text(text)
    begun = time.monotonic_ns()
    if not isinstance(d.resolver, Unbound):
        d.resolver.control("reconfig")
        return
    d.resolver.control("reload")
    d.resolver.control("status")     # as Unbound.change()
    d.ledger.flushes.append(Flush("reload", begun, time.monotonic_ns(), everything))


@contextmanager
def _configured(d, text, why, concerns, gives, **client):
    """As _changed(), by another text of the configuration. The block may wait until the resolver shows it."""
    former = d.resolver.config.read_text()
    with _changed(d, why, concerns, gives, lambda: _configure(d, former), **client):
        _configure(d, text)
        yield


def access_changed(d):
    """One address of a client is refused."""
    link, family, address = _draw_client(d)
    text = d.resolver.config.read_text()
    if isinstance(d.resolver, Unbound):
        text = replaced(text, UNBOUND_ALLOWED, f"{UNBOUND_ALLOWED}    access-control: {address} refuse\n")
    else:
        text = replaced(text, f"allow-query {{ {ALLOWED} }};", f"allow-query {{ !{address}; {ALLOWED} }};")
        # of a recursive one; what is in the cache has a list of its own
        text = text.replace(f"allow-query-cache {{ {ALLOWED} }};", f"allow-query-cache {{ !{address}; {ALLOWED} }};")
    with _configured(d, text, f"{address} is refused", _everything, _gives_refusal, link=link, family=family):
        pass


def view_changed(d):
    """One address of a client gets other data, of a view that is new."""
    link, family, address = _draw_client(d)
    text, number = d.resolver.config.read_text(), NUMBERS[0]
    if isinstance(d.resolver, Unbound):
        view = ["view:", '    name: "other"', f'    local-zone: "{zone.ZONE}" redirect',
                *(f'    local-data: "{zone.ZONE} 30 {t} {_address(t, number)}"' for t in ("A", "AAAA"))]
        text = replaced(text, UNBOUND_ALLOWED, f"{UNBOUND_ALLOWED}    access-control-view: {address} other\n")
        text += "\n".join(view) + "\n"
    else:
        (d.resolver.dir / OTHER).write_text(_zone_text(zone.ZONE, number, wildcard=True))
        head, first, rest = text.partition('zone "')
        text = f'{head}view "other" {{ match-clients {{ {address}; }}; zone "{zone.ZONE[:-1]}" {{ type primary; ' \
               f'file "{OTHER}"; }}; }};\nview "storm" {{\n{first}{rest}}};\n'
    with _configured(d, text, f"a view for {address}", _everything, _gives_data(number), link=link, family=family):
        pass


def zone_configured(d):
    """A zone is added, and is removed again, by the configuration's file."""
    owner, number = _draw_owner(d), NUMBERS[0]
    (d.resolver.dir / ADDED).write_text(_zone_text(owner, number))
    text = d.resolver.config.read_text()
    if isinstance(d.resolver, Unbound):
        text += f'auth-zone:\n    name: "{owner}"\n    zonefile: "{d.resolver.dir / ADDED}"\n    fallback-enabled: no\n'
    else:
        head, first, rest = text.partition('zone "')
        text = f'{head}zone "{owner[:-1]}" {{ type primary; file "{ADDED}"; }};\n{first}{rest}'
    concerns = _below(owner)
    # a forwarder gives an alias with its target's data, and so does the zone that has it
    if isinstance(d.resolver, Unbound) and (d.ways or not issubclass(d.server.judge, OfResolver)):
        concerns = _of(owner)
    with _configured(d, text, f"zone {owner} in the configuration", concerns,
                     _gives_data(number, issubclass(d.server.judge, OfResolver))):
        _shown_by_resolver(d, owner, "SOA", f" {number} ")


def _draw_owner(d):
    """A name with data of both types, which has an alias or has none."""
    return zone.name(f"steady{d.rng.randrange(len(zone.STEADY) // 2)}")


# -- commands --------------------------------------------------------------------------------------------
def zone_by_command(d):
    """BIND: a zone is added, changed and removed by rndc. Unbound: local data, or a local zone, by unbound-control."""
    owner = _draw_owner(d)
    if isinstance(d.resolver, Unbound):
        _local_data(d, owner)
        return
    first, second = NUMBERS
    (d.resolver.dir / ADDED).write_text(_zone_text(owner, first))
    aliases = issubclass(d.server.judge, OfResolver)
    with _changed(d, f"rndc addzone {owner}", _below(owner), _gives_data(first, aliases), lambda: _reload_added(d, owner, second)) as added:
        d.resolver.control("addzone", owner[:-1], f'{{ type primary; file "{ADDED}"; }};')
        _shown_by_resolver(d, owner, "SOA", f" {first} ")
    with _changed(d, f"rndc addzone, reload, delzone {owner}", _below(owner), _gives_data(second, aliases),
                  lambda: d.resolver.control("delzone", owner[:-1]), since=added.ending):
        pass


def _reload_added(d, owner, number):
    (d.resolver.dir / ADDED).write_text(_zone_text(owner, number))
    d.resolver.control("reload", owner[:-1])
    _shown_by_resolver(d, owner, "SOA", f" {number} ")


def _local_data(d, owner):
    of_this_name = _of(owner)

    def of_its_data(question):
        return of_this_name(question) and question.key.rdtype in ("A", "AAAA")

    def remove():
        d.resolver.control("local_data_remove", owner)
        d.resolver.control("local_zone_remove", owner)
    kind = d.rng.choice(("data", "always_nxdomain", "always_refuse"))
    if kind == "data":
        with _changed(d, f"local_data {owner}", of_its_data, _gives_data(NUMBERS[0]), remove):
            d.resolver.control("local_zone", owner, "typetransparent")     # of one type after the other
            for rdtype in ("A", "AAAA"):
                d.resolver.control("local_data", f"{owner} 30 {rdtype} {_address(rdtype, NUMBERS[0])}")
        return
    gives = {"always_nxdomain": _gives_code(dns.rcode.NXDOMAIN), "always_refuse": _gives_refusal}[kind]
    with _changed(d, f"local_zone {owner} {kind}", of_this_name, gives,
                  lambda: d.resolver.control("local_zone_remove", owner)):
        d.resolver.control("local_zone", owner, kind)


KINDS = {
    "access changed": access_changed,
    "view changed": view_changed,
    "zone configured": zone_configured,
    "zone by command": zone_by_command,
}
