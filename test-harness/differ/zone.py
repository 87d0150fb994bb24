# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Two zones with every kind of answer, one of them signed: short TTLs down to 0, alias chains, DNAME, wildcards, large RRsets,
names with any octet and of the greatest length, known and unknown types. And three small zones, which a resolver may serve
itself.

A line is "owner TTL IN type rdata", all names absolute, as in the generated tree."""

from lab import answer_zones, changing_zones
from lab.answer_zones import Key, sign

from . import slow_zones

PLAIN, SIGNED = "twins.example.", "secured.example."
ADDRESS = "10.53.4.9"                # of their name server, which serves everything below example. in this run
OWN, READ, MOVED = "own.example.", "read.example.", "moved.example."      # takes updates; is reloaded; is transferred
SMALL = OWN, READ, MOVED
ADDRESSES = (ADDRESS, changing_zones.LAB, changing_zones.RELAY, *changing_zones.TLD.values(), *answer_zones.SERVER.values())
TTLS = (0, 1, 2, 3, 4, 5, 7, 10)
PER_TTL = {0: 2, 1: 3}               # names of each TTL
PER_TTL_ELSE = 8
CHAIN = 8                            # CNAMEs in a row; Unbound follows 11
NEGATIVE_TTL = 3
CHANGING = 12                        # names whose data the run changes at the authoritative server
SETTLED_TTL = 300                    # of data that do not expire within a run


def _escaped(octets):
    return "".join(f"\\{o:03}" for o in octets)


def _longest(origin, label_len):
    """Labels below the origin up to a name of 255 octets."""
    room = 255 - (len(origin) + 1)
    labels = []
    while room >= 2:
        length = min(label_len, room - 1)
        if room - 1 - length == 1:
            length += 1 if length < 63 else -1     # one octet left would hold no label
        labels.append("l" * length)
        room -= length + 1
    return ".".join(labels) + "." + origin


def odd_owners(origin):
    """Owner names that are unusual as names, in presentation form."""
    return [_longest(origin, 63), _longest(origin, 1), "x" * 63 + "." + origin,
            _escaped(b"\0") + "." + origin, _escaped(b"a.b") + "." + origin, _escaped(b"two words") + "." + origin,
            _escaped(bytes(range(1, 33))) + "." + origin, _escaped(b"\xff\xfe\x80") + "." + origin,
            _escaped(b"\\\"();@$") + "." + origin, _escaped(b"[\\]^_`{|}~") + "." + origin,
            "MiXeD.CaSe." + origin, "_tcp._under." + origin, "--." + origin, "0." + origin]


def _data(origin):
    """Records of one owner each that differ in type and size."""
    host = f"t5x0.{origin}"
    yield "types", "MX", [f"10 {host}", f"20 mail.{origin}", "30 mx.elsewhere.example."]
    yield "types", "SRV", [f"1 2 443 {host}", f"1 3 443 mail.{origin}"]
    yield "types", "PTR", [host]
    yield "types", "CAA", ['0 issue "ca.example"', '128 iodef "mailto:x@example"']
    yield "types", "TLSA", ["3 1 1 " + "ab" * 32]
    yield "types", "SSHFP", ["4 2 " + "cd" * 32]
    yield "types", "NAPTR", ['100 50 "s" "http+N2L" "" www.example.']
    yield "types", "HTTPS", ["1 . alpn=h2,h3 ipv4hint=192.0.2.80"]
    yield "types", "SVCB", [f"2 {host} port=8443"]
    yield "types", "LOC", ["51 30 12.748 N 0 7 39.612 W 0.00m"]
    yield "types", "HINFO", ['"cpu" "os"']
    yield "types", "RP", [f"admin.{origin} txt.{origin}"]
    yield "types", "AFSDB", [f"1 {host}"]
    yield "types", "KX", [f"10 {host}"]
    yield "types", "URI", ['10 1 "urn:example:a"']
    yield "types", "EUI48", ["00-11-22-33-44-55"]
    yield "types", "TYPE65280", ["\\# 5 0102030405"]
    yield "types", "TYPE12345", ["\\# 0"]
    yield "aliased", "DNAME", [f"sub.{origin}"]
    for size in (100, 400, 480, 1100, 1180, 1400, 3000):
        strings = [size - at if size - at < 250 else 250 for at in range(0, size, 250)]
        yield f"text{size}", "TXT", [" ".join('"' + "t" * n + '"' for n in strings)]
    for count in (2, 3, 4, 7, 13, 20, 30, 40, 70):
        yield f"many{count}", "A", [f"198.51.100.{i}" for i in range(1, count + 1)]
        yield f"many{count}", "AAAA", [f"2001:db8::{i:x}" for i in range(1, count + 1)]
    yield "unequal", "TXT", ['"a"', '"bb"', '"ccc"']


def _head(origin, serial):
    return [f"{origin} 3600 IN SOA ns.{origin} hostmaster.{origin} {serial} 3600 900 604800 {NEGATIVE_TTL}",
            f"{origin} 3600 IN NS ns.{origin}", f"ns.{origin} 3600 IN A {ADDRESS}"]


def _changing(origin, generation):
    """The generation is the last octet of their addresses."""
    for n in range(CHANGING):
        yield f"changing{n}.{origin} {SETTLED_TTL} IN A {_address(generation)}"
        yield f"to-changing{n}.{origin} {SETTLED_TTL} IN CNAME changing{n}.{origin}"


def _address(generation):
    return f"192.0.2.{generation % 250 + 1}"


def small_lines(origin, generation=1, serial=1):
    """A zone with aliases into the others, which a resolver that serves it follows in its cache."""
    return [*_head(origin, serial), *_changing(origin, generation),
            f"settled.{origin} {SETTLED_TTL} IN A 192.0.2.240", f"settled.{origin} {SETTLED_TTL} IN AAAA 2001:db8::f0",
            f"settled.{origin} {SETTLED_TTL} IN MX 10 mail.{PLAIN}", f'settled.{origin} {SETTLED_TTL} IN TXT "own"',
            f"brief.{origin} 2 IN A 192.0.2.241", f"*.wild.{origin} 5 IN A 192.0.2.242",
            f"below.an.empty.node.{origin} 60 IN A 192.0.2.243", f"dangling.{origin} 60 IN CNAME no-such-name.{origin}",
            *(f"to-{other.partition('.')[0]}.{origin} {SETTLED_TTL} IN CNAME {name}.{other}"
              for other, name in ((PLAIN, "t5x1"), (SIGNED, "t10x2"), (OWN, "brief"), (READ, "settled")) if other != origin),
            *(f"many.{origin} {SETTLED_TTL} IN A 198.51.100.{i}" for i in range(1, 9))]


def lines(origin, generation=1, serial=1):
    """All records."""
    out = _head(origin, serial)

    def add(owner, ttl, rdtype, *rdata):
        out.extend(f"{owner} {ttl} IN {rdtype} {r}" for r in rdata)

    for ttl in TTLS:
        for n in range(PER_TTL.get(ttl, PER_TTL_ELSE)):
            owner = f"t{ttl}x{n}.{origin}"
            add(owner, ttl, "A", *(f"192.0.2.{16 * n + i + 1}" for i in range(1 + n % 4)))
            add(owner, ttl, "AAAA", f"2001:db8:{n}::{ttl + 1:x}")
        # an alias that lives longer than its target, and the other way
        add(f"long{ttl}.{origin}", SETTLED_TTL, "CNAME", f"t{ttl}x0.{origin}")
        add(f"short{ttl}.{origin}", ttl, "CNAME", f"settled.{origin}")
    for n in range(CHAIN):
        add(f"chain{n}.{origin}", 20 - n, "CNAME", f"chain{n + 1}.{origin}")
    add(f"chain{CHAIN}.{origin}", 6, "A", "192.0.2.99", "192.0.2.98", "192.0.2.97")
    add(f"settled.{origin}", SETTLED_TTL, "A", "192.0.2.250")
    add(f"mail.{origin}", SETTLED_TTL, "A", "192.0.2.251")
    add(f"dangling.{origin}", SETTLED_TTL, "CNAME", f"no-such-name.{origin}")
    add(f"nodata.{origin}", SETTLED_TTL, "CNAME", f"text100.{origin}")
    add(f"*.wild.{origin}", 5, "A", "192.0.2.60", "192.0.2.61")
    add(f"*.wild.{origin}", 5, "TXT", '"from a wildcard"')
    add(f"*.starred.{origin}", 5, "CNAME", f"t5x1.{origin}")
    add(f"in.sub.{origin}", 5, "A", "192.0.2.70")
    add(f"below.an.empty.node.{origin}", 60, "A", "192.0.2.71")
    for owner in odd_owners(origin):
        add(owner, 30, "A", "192.0.2.80")
        add(owner, 30, "TXT", '"odd"')
    # whose server knows nothing of it: resolutions below fail
    add(f"lame.{origin}", 60, "NS", f"ns.{origin}")
    out.extend(_changing(origin, generation))
    for owner, rdtype, rdata in _data(origin):
        add(f"{owner}.{origin}", 5 if owner == "aliased" else 60, rdtype, *rdata)
    return out


def delegate(tree, seed):
    """Makes the signed root of a generated tree delegate example. and k., without DS."""
    path, keys = tree / "zones" / "root.zone", tree / "keys"
    keys.mkdir()
    unsigned = [line for line in path.read_text().splitlines(keepends=True)
                if line.split(None, 4)[3] not in ("RRSIG", "NSEC", "DNSKEY")]
    added = ["example. 86400 IN NS ns.example.\n",
             *(f"ns.example. 86400 IN {t} {changing_zones.TLD[f]}\n" for t, f in (("A", 4), ("AAAA", 6))),
             answer_zones.delegation("k")]
    path.write_text("".join(unsigned + added))
    sign(Key("", seed), path, keys)


class Zones:
    """The zone files in a directory: example. with the lab's zones, those of lab/answer_zones.py, and this module's. origins:
    all zones' names; anchors: files; config, slow_config: zone: clauses of two NSD, since a parent's server shall not answer for
    slow_zones.py."""

    def __init__(self, directory, seed, slow=False):
        """slow: with those of slow_zones.py, which have servers of their own (authorities.py)."""
        self.directory, self.generation = directory, 1
        self.zones = changing_zones.Zones(directory, storm=False)
        self.key = Key(SIGNED.rstrip("."), seed)
        anchor = directory / "secured.key"
        anchor.write_text(f"{SIGNED} 3600 IN DS {self.key.ds()}\n")
        self.anchors = (self.zones.anchors, anchor)
        with open(directory / "example.zone", "a") as upper:
            upper.writelines(f"{origin} NS ns.{origin}\nns.{origin} A {ADDRESS}\n" for origin in (PLAIN, SIGNED, *SMALL))
        self.config = changing_zones.LAB_ZONES + "".join(f'zone:\n    name: "{o}"\n    zonefile: {self.file(o).name}\n'
                                              for o in ("example.", PLAIN, SIGNED, OWN, READ, MOVED))
        self.config += "    provide-xfr: 10.53.0.0/16 NOKEY\n    store-ixfr: yes\n    create-ixfr: yes\n"    # of MOVED
        self.origins = [line.split('"')[1] for line in self.config.splitlines() if "name:" in line]
        self.slow_config = ""
        self.write()
        if slow:
            self._add_slow(seed)

    def _add_slow(self, seed):
        with open(self.directory / "example.zone", "a") as upper:
            upper.writelines(f"{o} NS ns.{o}\nns.{o} A {slow_zones.SERVER[o]}\n" for o in slow_zones.ORIGINS)
        for origin in slow_zones.ORIGINS:
            self.file(origin).write_text("\n".join(slow_zones.lines(origin)) + "\n")
            self.slow_config += f'zone:\n    name: "{origin}"\n    zonefile: {self.file(origin).name}\n'
        for origin in slow_zones.SIGNED:
            key = Key(origin.rstrip("."), seed)
            sign(key, self.file(origin), self.directory / "keys")
            anchor = self.directory / f"{origin}key"
            anchor.write_text(f"{origin} 3600 IN DS {key.ds()}\n")
            self.anchors += (anchor,)
        self.origins += slow_zones.ORIGINS

    def file(self, origin):
        return self.directory / f"{'lab' if origin == 'lab.example.' else origin.rstrip('.')}.zone"

    def write(self, origins=(PLAIN, SIGNED, *SMALL), serial=1):
        for origin in origins:
            content = (small_lines if origin in SMALL else lines)(origin, self.generation, serial)
            self.file(origin).write_text("\n".join(content) + "\n")
        if SIGNED not in origins:
            return
        sign(self.key, self.file(SIGNED), self.directory / "keys")
        # the signer does not escape a quotation mark in a name, and named can't read that
        text = self.file(SIGNED).read_text()
        self.file(SIGNED).write_text(text.replace(r'\\"', r'\\\"'))

    def change(self, origins, serial=1):
        """Writes the next generation of the changing names of these zones; returns its address. The serial of a zone behind
        caches stays: otherwise the SOA in cached negative answers would differ by the time of its fetch."""
        self.generation += 1
        self.write(origins, serial)
        return _address(self.generation)
