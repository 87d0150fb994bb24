# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Questions with and without data in the zones, in pools by how often they are asked:

hot       again and again, so that they become rules; the first far more often than the last (Zipf)
brief     as hot, with answers that expire within the run
changing  names whose data the run changes, and their aliases
cold      once or twice; with denied, these are many names that do not exist, below and beside those that do

Also the zones' own TTLs, which no reply's may exceed. Names are in wire format."""

import itertools
import struct
import subprocess

import dns.name
import dns.rdatatype

from lab.run import HarnessError

from . import zone
from .slow_zones import zone_of

BRIEF_TTL = 10
# Shares of queries in mixed case. A resolver asks the authoritative server with the case of its client, and the data come back
# in that case, as changed data: each time the rules that hold the zone's SOA or the alias are withdrawn.
MIXED_HOT, MIXED = 0.06, 0.02
HASHED = 0.3             # part of the names that do not exist
NSEC3PARAM = 51
ZIPF = 1.0
COMMON_TYPES = [dns.rdatatype.from_text(t) for t in (
    "A", "AAAA", "MX", "TXT", "NS", "SOA", "CNAME", "HTTPS", "SRV", "PTR", "DS", "DNSKEY", "NSEC", "RRSIG", "DNAME",
    "CAA", "TLSA", "NAPTR", "SVCB", "SSHFP", "LOC", "HINFO", "SPF", "ANY")]
# Types that ask for something other than data, and types that are invalid in a question.
META_TYPES = [0, 41, 128, 249, 250, 251, 252, 253, 254, 255]


def to_wire(text):
    """Converts an absolute name from presentation form to wire format; keeps letter case."""
    if "\\" in text:
        return dns.name.from_text(text).to_wire()
    return b"".join(bytes((len(label),)) + label for label in text.encode().rstrip(b".").split(b".") if label) + b"\0"


class Data:
    """The records of zones: TTLs by (owner name in lower case, type), and the types of each owner name. lines: "owner TTL IN
    type rdata", names absolute."""

    def __init__(self, lines):
        self.ttl, self.owners = {}, {}
        numbers = {}
        for line in lines:
            words = line.split(None, 4)
            if len(words) < 4 or words[2] != "IN":
                continue
            owner, ttl, _, rdtype = words[:4]
            if rdtype not in numbers:
                numbers[rdtype] = dns.rdatatype.from_text(rdtype)
            number = numbers[rdtype]
            wire = to_wire(owner)
            key = (wire.lower(), number)
            self.ttl[key] = max(int(ttl), self.ttl.get(key, 0))
            if number == 6:
                self.ttl[(wire.lower(), "negative")] = min(int(ttl), int(words[4].split()[6]))
            if number not in (46, 47):      # RRSIG and NSEC come with other answers
                self.owners.setdefault(wire, {})[number] = int(ttl)

    def limit(self, owner, rdtype):
        """The zone's own TTL for an RRset, wildcards included; None when it is in no zone."""
        owner = owner.lower()
        found = self.ttl.get((owner, rdtype))
        while found is None and owner != b"\0":
            owner = owner[1 + owner[0]:]
            found = self.ttl.get((b"\x01*" + owner, rdtype))
            if found is None and rdtype == 5:
                found = self.ttl.get((owner, 39))      # a CNAME synthesized from a DNAME
        return found


def zone_lines(path):
    """The lines of any zone file, as Data reads them."""
    done = subprocess.run(["ldns-read-zone", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise HarnessError(f"ldns-read-zone {path} (Debian package ldnsutils): {done.stderr.strip()}")
    return done.stdout.splitlines()


class Pool:
    """Questions (name, type) with cumulative weights, for random.choices()."""

    def __init__(self, questions, zipf=0.0):
        self.questions = questions
        self.weights = list(itertools.accumulate((rank + 3) ** -zipf for rank in range(len(questions))))

    def add(self, name, rdtype):
        """Adds a question, as likely as the first one."""
        self.questions.append((name, rdtype))
        self.weights.append((self.weights[-1] if self.weights else 0) + self.weights[0])


def _names_of(tree, seed_rng, count):
    """Questions for names of the generated tree, by popularity, with types that exist and types that do not."""
    for line in (tree / "names.tsv").read_text().splitlines()[1:count + 1]:
        name, types, kind = (line.split("\t")[i] for i in (1, 2, 4))
        wire = to_wire(name)
        for rdtype in types.split(",") if types != "-" else ("A", "AAAA"):
            yield wire, dns.rdatatype.from_text(rdtype), kind
        yield wire, seed_rng.choice(COMMON_TYPES[:12]), kind


def _special(origin, rng):
    """Names in our own zones that their files do not list: from wildcards, below DNAMEs, non-existent, or below a lame
    delegation."""
    base = to_wire(origin)
    longest_a = b"\x01a" * ((255 - len(base)) // 2)
    for n in range(6):
        yield b"\x05twice" + bytes((2,)) + b"w%d" % n + b"\x04wild" + base
        yield b"\x03w%02d" % n + b"\x07starred" + base
        yield b"\x04no%02d" % n + base
        yield b"\x02n%d" % n + b"\x03sub" + base
        yield b"\x02n%d" % n + b"\x04lame" + base
        yield b"\x02in" + b"\x07aliased" + base if n == 0 else b"\x02n%d" % n + b"\x07aliased" + base
    yield b"\x02an\x05empty\x04node" + base
    yield longest_a[:2 * ((255 - len(base)) // 2)] + base
    for _ in range(20):
        octets = rng.randbytes(rng.randrange(1, 20))
        yield bytes((len(octets),)) + octets + base


class Questions:
    """The pools. data: of all zones; tree: directory of the generated tree or None; crowds: who asks about slow_zones.py, which
    no pool does, or None."""

    def __init__(self, data, tree, rng, hot, cold, denied=0):
        self.data, self.crowds = data, None
        own = self._own(data, rng)
        tree_hot = [q[:2] for q in _names_of(tree, rng, hot)] if tree else []
        brief = [q for q in own if self._least_ttl(q) <= BRIEF_TTL]
        settled = [q for q in own if self._least_ttl(q) > BRIEF_TTL]
        changing = [q for q in settled if b"changing" in q[0]]
        for questions in (settled, brief):
            rng.shuffle(questions)
        mixed = [q for pair in itertools.zip_longest(tree_hot, settled) for q in pair if q]
        self.hot = Pool(mixed[:hot], ZIPF)
        self.brief = Pool(brief[:hot], ZIPF)
        self.changing = Pool(changing)
        self.cold = Pool(self._cold(tree, mixed[hot:] + brief[hot:], rng, cold) + list(self._denied(data, rng, denied)))

    def pools(self, style):
        """[(pool, its share, share in mixed case)]"""
        rest = max(0.0, 1 - style.hot - style.brief - style.changing)
        return [(self.hot, style.hot, MIXED_HOT), (self.brief, style.brief, MIXED), (self.changing, style.changing, MIXED),
                (self.cold, rest, MIXED)]

    def _least_ttl(self, question):
        ttls = self.data.owners.get(question[0], {})
        return ttls.get(question[1], ttls.get(5, zone.NEGATIVE_TTL))

    @staticmethod
    def _own(data, rng):
        """Questions for owner names of the zones outside the tree, with their types and others, and for unlisted names."""
        ends = (to_wire("example."), to_wire("k."))
        found = []
        for owner, types in data.owners.items():
            if owner.endswith(ends) and not zone_of(owner.lower()):
                found += [(owner, t) for t in types] + [(owner, 1), (owner, 28), (owner, rng.choice(COMMON_TYPES))]
        for origin in (zone.PLAIN, zone.SIGNED):
            for name in _special(origin, rng):
                found += [(name, 1), (name, 28), (name, rng.choice(COMMON_TYPES))]
        return list(dict.fromkeys(found))

    @staticmethod
    def _cold(tree, rest, rng, count):
        questions = list(rest)
        bases = [to_wire(zone.PLAIN), to_wire(zone.SIGNED), b"\0", b"\x03net\0"]
        if tree:
            questions += [q[:2] for q in _names_of(tree, rng, count)]
            bases += [to_wire(line.split("\t")[0]) for line in (tree / "fresh.tsv").read_text().splitlines()[1:]]
        for _ in range(count // 4):
            label = b"%x" % rng.getrandbits(40)
            questions.append((bytes((len(label),)) + label + rng.choice(bases), rng.choice((1, 28, 16))))
        # the root, and names with the most labels and octets that a name can have
        for name in (b"\0", b"\x01a" * 127 + b"\0", (b"\x3f" + b"m" * 63) * 3 + b"\x3d" + b"m" * 61 + b"\0"):
            questions += [(name, t) for t in COMMON_TYPES]
        rng.shuffle(questions)
        return questions


    @staticmethod
    def _denied(data, rng, count):
        """Names of one to three labels more than an owner name, or a part of one, has; many of them in zones signed with NSEC3, where one
        proof is for all names between two hashes."""
        owners = list(data.owners)
        zones = tuple(owner for owner, types in data.owners.items() if NSEC3PARAM in types)
        hashed = [owner for owner in owners if owner.endswith(zones)]
        for _ in range(count):
            name = rng.choice(hashed if hashed and rng.random() < HASHED else owners)
            for _ in range(rng.randrange(3)):
                name = name[1 + name[0]:] or name
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                label = rng.choice((b"*", b"w", b"%x" % rng.getrandbits(rng.choice((4, 20, 60)))))
                name = bytes((len(label),)) + label + name
            if len(name) <= 255:
                yield name.lower(), rng.choice(COMMON_TYPES)


def any_type(rng):
    """A type number: a common type, one below 110, a meta type, or any of the 65,536."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(COMMON_TYPES)
    if kind < 0.8:
        return rng.randrange(1, 110)
    return rng.choice(META_TYPES) if kind < 0.9 else rng.randrange(65536)


def question_octets(name, rdtype, rdclass=1):
    return name + struct.pack("!HH", rdtype, rdclass)
