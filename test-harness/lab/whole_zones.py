# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones of several kinds that are preloaded whole, the same ones for the same seed but for keys and signatures, and questions drawn from
them.

A kind yields names of its zone, relative to the origin, each once, with its records as (type, rdata)."""

import itertools
import random
import string
import subprocess
from collections import namedtuple
from dataclasses import dataclass, field

from .run import HarnessError

ORIGIN = "x" * 13              # the last label that rules.c gives names of 24 octets
TTL = 86400
TLDS = 1_440                   # that the root zone delegates
COUNTRIES = 250                # of them have labels of two letters
SIGNED = 0.92                  # of them have DS records
LARGE = 0.01                   # of them have 13 servers, as com, net and few others
SECURE = 0.04                  # of a registry's delegations have DS records
SHARED = 0.3                   # of them have the servers of another
SERVERS = 4, 8                 # of the others
DEPTH = 8                      # labels of a name of `deep` at most
ELSEWHERE = "elsewhere.test."
SIGNING_SECONDS = 1800

Kind = namedtuple("Kind", "records origin names algorithm nsec3", defaults=(ORIGIN, (), None, ()))
"""names: how many the zone has (with --quick, without), or their number is the generator's; algorithm: None: unsigned; nsec3: options of
dnssec-signzone."""


def label(number):
    """The label of a name number, as pace_label() of pace.h."""
    return "".join(chr(ord("a") + (number >> 4 * i & 15)) for i in range(8))


def a(rng):
    return "A", f"198.18.{rng.randrange(256)}.{rng.randrange(1, 255)}"


def aaaa(rng):
    return "AAAA", f"2001:db8:{rng.randrange(1 << 16):x}::{rng.randrange(1, 1 << 16):x}"


def addresses(rng):
    return [a(rng), aaaa(rng)]


def delegation(servers):
    return [("NS", server) for server in servers]


def ds(rng):
    return "DS", f"{rng.randrange(1 << 16)} 13 2 {rng.randbytes(32).hex()}"


# --- the kinds -------------------------------------------------------------------------------------------------
def plain(rng, names):
    """Names with an address right below the apex."""
    for n in range(names):
        yield label(n), [a(rng)]


def delegations(rng, names):
    """Each with two servers below it."""
    for n in range(names):
        cut = label(n)
        servers = [f"{host}.{cut}" for host in ("ns1", "ns2")]
        yield cut, delegation(servers)
        for server in servers:
            yield server, addresses(rng)


def branch(rng, top):
    """A name, one below the other: each has data, or only names below it; many have a wildcard, or beside them a DNAME."""
    at = top
    for level in range(1, rng.randint(2, DEPTH)):
        if rng.random() < 0.7:
            yield at, [a(rng)]
        if rng.random() < 0.4:
            yield f"*.{at}", [a(rng)]
        if rng.random() < 0.3:
            yield f"away{level}.{at}", [("DNAME", ELSEWHERE)]
        at = f"{rng.choice(string.ascii_lowercase)}{level}.{at}"
    yield at, addresses(rng)


def deep(rng, names):
    """Wildcards and DNAMEs at every depth."""
    found = (name for n in itertools.count() for name in branch(rng, label(n)))
    return itertools.islice(found, names)


def tld_labels(rng, tlds):
    """So many, all different; the first two share servers as com and net do."""
    found = dict.fromkeys(("net", "com"))
    while len(found) < tlds:
        letters = 2 if len(found) < COUNTRIES else rng.randint(3, 14)
        found["".join(rng.choices(string.ascii_lowercase, k=letters))] = None
    return list(found)


def own_servers(rng, tld):
    if tld == "net" or rng.random() < LARGE:
        return [f"{letter}.gtld-servers.{tld}." for letter in string.ascii_lowercase[:13]]
    return [f"{letter}.nic.{tld}." for letter in string.ascii_lowercase[:rng.randint(*SERVERS)]]


def root(rng, tlds):
    """TLDs as the root zone has them: their number, servers, addresses of these in both families, and DS records."""
    for letter in string.ascii_lowercase[:13]:
        yield f"{letter}.root-servers.net.", addresses(rng)
    found = []
    for tld in tld_labels(rng, tlds):
        shared = found[0] if tld == "com" else rng.choice(found) if found and rng.random() < SHARED else None
        servers = shared or own_servers(rng, tld)
        yield f"{tld}.", delegation(servers) + [ds(rng)] * (rng.random() < SIGNED)
        if not shared:
            found.append(servers)
            for server in servers:
                yield server, addresses(rng)


def registry(rng, names):
    """As a TLD: delegations, few of them signed, at the apex and below names without data, a level or two of these."""
    parents = [""] * 6 + [".co", ".ac", ".city.region", ".town.region", ".mixed"]
    yield "signed.mixed", [("NS", "ns1.elsewhere.test."), ds(rng)]
    for n in range(names):
        cut = label(n) + rng.choice(parents)
        secure = rng.random() < SECURE and cut.count(".") == 0
        inside = rng.random() < 0.3
        servers = [f"{host}.{cut}" for host in ("ns1", "ns2")] if inside else [f"ns{rng.randrange(9)}.elsewhere.test." for _ in range(2)]
        yield cut, delegation(servers) + [ds(rng)] * secure
        for server in servers if inside else ():
            yield server, [a(rng)]
        if n % 50 == 0:
            yield f"host{n}", addresses(rng)


ECDSA, RSA = ["-a", "ECDSAP256SHA256"], ["-a", "RSASHA256", "-b", "2048"]
NSEC3 = ("-3", "-", "-H", "0")
KINDS = {
    "root": Kind(root, ".", (TLDS, TLDS), RSA),              # as the root's signatures are
    "nsec": Kind(plain, names=(5_000, 1_000_000), algorithm=ECDSA),
    "nsec3": Kind(plain, names=(5_000, 1_000_000), algorithm=ECDSA, nsec3=NSEC3),
    "optout": Kind(registry, names=(2_000, 100_000), algorithm=ECDSA, nsec3=(*NSEC3, "-A")),
    "delegations": Kind(delegations, names=(2_000, 100_000)),
    "deep": Kind(deep, names=(2_000, 100_000)),
}
ROOT_SERVERS = [("NS", f"{letter}.root-servers.net.") for letter in string.ascii_lowercase[:13]]


# --- one zone ----------------------------------------------------------------------------------------------------
@dataclass
class Zone:
    """path: of its file; names: (owner, types that it has), of all owners, the apex too."""
    origin: str
    path: object
    names: list = field(default_factory=list)

    def full(self, owner):
        """The name with all its labels, without the last dot."""
        return owner.removesuffix(".") if owner.endswith(".") else f"{owner}.{self.origin}"

    def questions(self, rng, count):
        """(name, type): a name of the zone, all alike, and a type of its own."""
        drawn = rng.choices(self.names, k=count)
        return [(self.full(owner), rng.choice(types)) for owner, types in drawn]

    def absent(self, rng, count):
        """Random names right below the apex. A name of the zone is among them but by a chance of one in 10^10."""
        return [(f"{random_label(rng)}.{self.origin}".rstrip("."), "A") for _ in range(count)]

    def below(self, rng, count):
        """Random names right below the zone's delegations, or below any of its names if it has none."""
        names = self.names[1:]
        drawn = rng.choices([name for name in names if "NS" in name[1]] or names, k=count)
        return [(f"{random_label(rng)}.{self.full(owner)}", "A") for owner, _ in drawn]


def random_label(rng):
    return "".join(rng.choices(string.ascii_lowercase, k=15))


def apex(kind):
    """The apex, with its records, and what it names."""
    if kind.origin == ".":
        yield ".", [("SOA", "a.root-servers.net. nstld.verisign-grs.com. 1 1800 900 604800 86400"), *ROOT_SERVERS]
    else:
        yield f"{kind.origin}.", [("SOA", "ns hostmaster 1 3600 900 604800 300"), ("NS", "ns")]
        yield "ns", [("A", "203.0.113.53")]


def write(kind, path, names, seed):
    """The Zone, written to this file."""
    rng, zone = random.Random(f"{kind.records.__name__} {seed}"), Zone(kind.origin, path)
    with path.open("w") as file:
        file.write(f"$ORIGIN {kind.origin.removesuffix('.')}.\n$TTL {TTL}\n")
        for owner, records in itertools.chain(apex(kind), kind.records(rng, names)):
            file.writelines(f"{owner} {rdtype} {rdata}\n" for rdtype, rdata in records)
            zone.names.append((owner, tuple(dict.fromkeys(rdtype for rdtype, _ in records))))
    return zone


def run(argv):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=SIGNING_SECONDS)
    if done.returncode != 0:
        raise HarnessError(f"{argv[2]}: {done.stderr.strip()[-1000:]}")


def sign(tools, zone, kind):
    """Replaces the file by the signed zone, by one key."""
    keys, signed = zone.path.with_suffix(".keys"), zone.path.with_suffix(".signed")
    keys.mkdir(exist_ok=True)
    run([*tools.bind("bin/dnssec-keygen"), "-q", "-K", keys, *kind.algorithm, "-f", "KSK", zone.origin])
    # -z: the one key signs all; -P: named will not mind, and verifying takes as long as signing
    run([*tools.bind("bin/dnssec-signzone"), "-q", "-S", "-z", "-P", "-K", keys, "-d", keys, "-o", zone.origin, "-f", signed,
         *kind.nsec3, zone.path])
    signed.replace(zone.path)
