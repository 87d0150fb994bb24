# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What exists in the tree: zones, owner names, RRsets, popularity. Everything is drawn from one seed."""

import random
from dataclasses import dataclass, field

from . import words

# label, share of the second-level domains; the signed one is a chain of trust from the root down
TLDS = (("com", 46), ("net", 11), ("org", 11), ("de", 6), ("io", 4), ("nl", 5), ("fr", 4), ("jp", 3),
        ("info", 3), ("app", 2), ("ch", 2), ("se", 3))
SIGNED_TLD = "se"
LIVE_ZONE = "hydns-live.net"            # its data tests change; live.py writes it

TTLS = ((20, 3), (30, 5), (60, 17), (120, 6), (180, 3), (300, 27), (600, 7), (900, 3), (1800, 5), (3600, 14),
        (7200, 3), (14400, 3), (21600, 1), (43200, 1), (86400, 2))
SHORT_TTLS = ((20, 12), (30, 14), (60, 36), (120, 10), (300, 28))       # content delivery
NEGATIVE_TTLS = ((30, 1), (60, 3), (300, 4), (900, 3), (1800, 1), (3600, 2))
ADDRESS_COUNTS = ((1, 65), (2, 15), (3, 5), (4, 10), (6, 3), (8, 2))
CHAIN_LENGTHS = ((1, 60), (2, 30), (3, 10))
INFRASTRUCTURE_TTL = 86400

EDGE_ZONES = 10                          # content delivery networks: the ends of CNAME chains
EDGE_SHARE = 0.04                        # of all names, spread over these
ALIAS_SHARE = 0.2                        # hosts that are a CNAME into an edge zone
WWW_ALIAS_SHARE = 0.45                   # www names that are
IPV6_SHARE = 0.55                        # hosts with A that have AAAA too
HTTPS_SHARE = 0.25                       # hosts with A that have an HTTPS RRset
NEGATIVE_SHARE = 0.05                    # names that do not exist and are asked for again and again
WILDCARD_ZONES = 8                       # unsigned and signed zones with a wildcard, each
HOSTERS = 20                             # DNS operators: ns1 and ns2 of each serve many zones


@dataclass(eq=False)
class Zone:
    name: str                            # without the final dot; "" is the root
    signed: bool = False
    negative_ttl: int = 300
    hoster: str = ""
    rrsets: dict = field(default_factory=dict)     # (owner, type) -> (ttl, [rdata])
    delegations: list = field(default_factory=list)


@dataclass
class Name:
    name: str
    types: tuple                         # with data, CNAME chains followed
    ttl: int
    kind: str                            # address, alias, text, negative
    secure: bool
    popularity: float


def pick(rng, table):
    return rng.choices([value for value, _ in table], [weight for _, weight in table])[0]


class Tree:
    """Builds the tree: `zones` by name, `names`, `fresh` (suffix, kind, secure)."""

    def __init__(self, seed, domains, names):
        self.rng = random.Random(f"hydns-zones {seed}")
        self.zones = {"": Zone("", signed=True)}
        self.names = []
        self.fresh = []
        self.edges = []                  # (zone, owner, types)
        self.edge_zones = []
        self.existing = set()            # owners and the empty non-terminals above them
        self.wanted = names
        self._address = 0
        self._tlds()
        self._domains(domains)
        self._edges()
        self._hosts()
        self._wildcards()
        self._negatives()
        self.names.sort(key=lambda n: (-n.popularity, n.name))

    # -- zones ---------------------------------------------------------------------------------------
    def _tlds(self):
        for label, _ in TLDS:
            self.zones[label] = Zone(label, signed=label == SIGNED_TLD, negative_ttl=900)
            self.zones[""].delegations.append(label)

    def _domains(self, count):
        """Second-level domains in order of popularity; the first HOSTERS in net serve the others' DNS."""
        hosters = []
        self.domains = []
        while len(self.domains) < count:
            hoster = len(hosters) < HOSTERS
            tld = "net" if hoster else pick(self.rng, TLDS)
            name = f"{words.domain_label(self.rng)}.{tld}"
            if name in self.zones or name == LIVE_ZONE:
                continue
            zone = Zone(name, signed=tld == SIGNED_TLD, negative_ttl=pick(self.rng, NEGATIVE_TTLS))
            self.zones[name] = zone
            self.zones[tld].delegations.append(name)
            self.domains.append(zone)
            if hoster:
                hosters.append(name)
            zone.hoster = name if hoster else self.rng.choice(hosters)
        self.hosters = hosters
        self.rng.shuffle(self.domains)

    # -- records ---------------------------------------------------------------------------------------
    def _add(self, zone, owner, rrtype, ttl, rdata):
        zone.rrsets[(owner, rrtype)] = (ttl, rdata)
        while owner not in self.existing:
            self.existing.add(owner)
            owner = owner.partition(".")[2]

    def _ipv4(self):
        """An address from 198.18.0.0/15, reserved for benchmarks (RFC 2544)."""
        self._address = (self._address + 1) % (1 << 17)
        return f"198.{18 + (self._address >> 16)}.{self._address >> 8 & 255}.{self._address & 255}"

    def _ipv6(self):
        return f"2001:db8:{self.rng.getrandbits(16):x}::{self.rng.getrandbits(16):x}:{self._address & 0xffff:x}"

    def _addresses(self, zone, owner, ttl, count):
        """Adds A, and maybe AAAA and HTTPS; a missing type is NODATA."""
        types = ["A"]
        self._add(zone, owner, "A", ttl, [self._ipv4() for _ in range(count)])
        if self.rng.random() < IPV6_SHARE:
            types.append("AAAA")
            self._add(zone, owner, "AAAA", ttl, sorted({self._ipv6() for _ in range(count)}))
        if self.rng.random() < HTTPS_SHARE:
            types.append("HTTPS")
            self._add(zone, owner, "HTTPS", ttl, ['1 . alpn="h2,h3"'])
        return tuple(types)

    def _edges(self):
        """Edge zones: names with several addresses and short TTLs. Users do not type them, so they are not among the most
        popular domains."""
        candidates = [z for z in self.domains[len(self.domains) // 4:] if not z.signed]
        self.edge_zones = self.rng.sample(candidates, EDGE_ZONES)
        for _ in range(int(self.wanted * EDGE_SHARE)):
            zone = self.rng.choice(self.edge_zones)
            owner = f"e{self.rng.randint(1000, 999999)}.{words.word(self.rng, 1)}.{zone.name}"
            if owner in self.existing:
                continue
            ttl = pick(self.rng, SHORT_TTLS)
            types = self._addresses(zone, owner, ttl, pick(self.rng, ADDRESS_COUNTS))
            self.edges.append((zone, owner, types))
            self._name(owner, types, ttl, "address", zone, 0.002)

    def _name(self, owner, types, ttl, kind, zone, popularity):
        self.names.append(Name(owner, types, ttl, kind, zone.signed,
                               popularity * self.rng.lognormvariate(0, 1)))

    def _hosts(self):
        """Distributes the wanted number of names over the domains: a few are very large."""
        weights = [1 / (rank + 12) ** 0.75 for rank in range(len(self.domains))]
        left, total = self.wanted - len(self.names), sum(weights)
        for rank, zone in enumerate(self.domains):
            popularity = 1 / (rank + 1) ** 0.8
            share = left if rank == len(self.domains) - 1 else round(left * weights[rank] / total)
            left, total = left - share, total - weights[rank]
            made = self._standard_hosts(zone, rank, popularity)
            while made < share:
                made += self._host(zone, words.host_label(self.rng), rank, popularity * 0.6 / made ** 0.9)
            left -= made - share

    def _ttl(self, rank):
        return pick(self.rng, SHORT_TTLS if rank < 50 and self.rng.random() < 0.5 else TTLS)

    def _standard_hosts(self, zone, rank, popularity):
        """Adds the apex with its mail and text RRsets, www, and the names that mail senders publish."""
        ttl = self._ttl(rank)
        types = self._addresses(zone, zone.name, ttl, pick(self.rng, ADDRESS_COUNTS))
        if self.rng.random() < 0.8:
            hosts = [f"mx{i}.{zone.name}" for i in range(1, self.rng.randint(2, 4))]
            self._add(zone, zone.name, "MX", 3600, [f"{10 * i} {host}." for i, host in enumerate(hosts, 1)])
            for host in hosts:
                self._name(host, self._addresses(zone, host, 3600, 1), 3600, "address", zone,
                           popularity * 0.05)
            policy = f'"v=spf1 mx include:_spf.{zone.hoster} ~all"'
            site = f'"site-verification={words.token(self.rng, 43)}"'
            self._add(zone, zone.name, "TXT", 3600, [policy, site])
            types += ("MX", "TXT")
            made = len(hosts) + self._text(zone, popularity)
        else:
            made = 0
        self._name(zone.name, types, ttl, "address", zone, popularity * 0.7)
        return made + 1 + self._host(zone, "www", rank, popularity, WWW_ALIAS_SHARE)

    def _text(self, zone, popularity):
        dmarc, dkim = f"_dmarc.{zone.name}", f"s{self.rng.randint(1, 3)}._domainkey.{zone.name}"
        self._add(zone, dmarc, "TXT", 3600, [f'"v=DMARC1; p=reject; rua=mailto:dmarc@{zone.name}"'])
        key = words.token(self.rng, 392)
        self._add(zone, dkim, "TXT", 3600, [f'"v=DKIM1; k=rsa; p={key[:200]}" "{key[200:]}"'])
        for owner in (dmarc, dkim):
            self._name(owner, ("TXT",), 3600, "text", zone, popularity * 0.03)
        return 2

    def _host(self, zone, label, rank, popularity, alias_share=ALIAS_SHARE):
        """Adds one host; returns 0 when the label is taken."""
        owner = f"{label}.{zone.name}"
        if owner in self.existing:
            return 0
        ttl = self._ttl(rank)
        if self.rng.random() < alias_share and zone not in self.edge_zones:
            return self._alias(zone, owner, ttl, popularity)
        types = self._addresses(zone, owner, ttl, pick(self.rng, ADDRESS_COUNTS))
        self._name(owner, types, ttl, "address", zone, popularity)
        return 1

    def _alias(self, zone, owner, ttl, popularity):
        """owner -> (customer name at an edge zone)* -> an edge: one to three links, across zones."""
        links = pick(self.rng, CHAIN_LENGTHS)
        _, target, types = self.rng.choice(self.edges)
        made = 1
        for _ in range(links - 1):
            via_zone = self.rng.choice(self.edge_zones)
            via = f"{words.token(self.rng, 10)}.c.{via_zone.name}"
            if via in self.existing:
                continue
            self._add(via_zone, via, "CNAME", self._ttl(0), [f"{target}."])
            self._name(via, types, ttl, "alias", via_zone, popularity * 0.01)
            target, made = via, made + 1
        self._add(zone, owner, "CNAME", ttl, [f"{target}."])
        self._name(owner, types, ttl, "alias", zone, popularity)
        return made

    # -- names that do not exist, and names that never repeat ----------------------------------------------
    def _wildcards(self):
        for signed in (False, True):
            zones = [z for z in self.domains if z.signed == signed]
            for zone in self.rng.sample(zones, min(WILDCARD_ZONES, len(zones))):
                label = f"w{words.token(self.rng, 5)}"
                ttl = pick(self.rng, SHORT_TTLS)
                self._add(zone, f"*.{label}.{zone.name}", "A", ttl, [self._ipv4()])
                self._add(zone, f"*.{label}.{zone.name}", "AAAA", ttl, [self._ipv6()])
                self.fresh.append((f"{label}.{zone.name}", "wildcard", signed))
                self.fresh.append((zone.name, "nxdomain", signed))

    def _negatives(self):
        """Names that mistyped links and outdated software ask for."""
        for _ in range(int(self.wanted * NEGATIVE_SHARE)):
            rank = min(int(self.rng.expovariate(6 / len(self.domains))), len(self.domains) - 1)
            zone = self.domains[rank]
            owner = f"{words.host_label(self.rng)}.{zone.name}"
            if owner in self.existing:
                continue
            self.existing.add(owner)
            self._name(owner, (), zone.negative_ttl, "negative", zone, 0.05 / (rank + 1) ** 0.8)
