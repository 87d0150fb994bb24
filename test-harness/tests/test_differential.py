# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Some thousands of generated queries, ordinary and odd, to the kernel path and to Unbound without it.

The same Unbound answers by the resolver's own loopback, where no XDP program is: same cache, same moment,
so whole messages can be compared."""

import random
import struct
import time

import pytest

from harness.client import exchange, query
from harness.compare import difference, ttls
from harness.network import SERVICE

SEED, QUERIES = 20240801, 4000
SETTLE = 0.1            # seconds until a renewal in Unbound's cache shows in every answer (doc/architecture.md)
NAMES = ["www", "alias", "chain", "many", "mail", "empty", "svc", "missing", "big", "brief", "host1", "host2", "host3"]
TYPES = ["A", "AAAA", "TXT", "MX", "HTTPS", "CNAME", "NS", "SOA", "ANY"]


def is_older(kernel, direct):
    """Same message but for lower TTLs in the kernel's: Unbound has just renewed an RRset of it for another
    question, as an alias's target. It may never be the other way."""
    return difference(kernel, direct, ttl_slack=1 << 31) is None and \
        all(k <= d + 1 for k, d in zip(ttls(kernel), ttls(direct)))


def ordinary(rng):
    """What resolvers' clients send, with every letter case, and options that vary the answer."""
    name = "".join(rng.choice((c, c.upper())) for c in f"{rng.choice(NAMES)}.lab.example")
    # few types, so that most questions become hot
    rdtype = rng.choice(TYPES) if rng.random() < 0.2 else "A"
    q = query(name, rdtype, edns=rng.random() < 0.6, dnssec=rng.random() < 0.2, cd=rng.random() < 0.05,
              ad=rng.random() < 0.2, rd=rng.random() < 0.95,
              cookie=rng.randbytes(8) if rng.random() < 0.2 else None,
              payload=rng.choice((512, 1232, 1232, 4096, 100)))
    q.id = rng.randrange(65536)
    return q.to_wire()


def odd(rng):
    """Queries that are damaged or unusual in one place."""
    wire = bytearray(ordinary(rng))
    kind = rng.randrange(8)
    if kind == 0:
        wire[2] ^= rng.choice((0x08, 0x10, 0x20, 0x40))          # opcode
    elif kind == 1:
        wire[2] ^= rng.choice((0x80, 0x04, 0x02))                # QR, AA, TC
    elif kind == 2:
        wire[3] ^= rng.choice((0x80, 0x40, 0x0F))                # RA, Z, RCODE
    elif kind == 3:
        struct.pack_into("!H", wire, rng.choice((4, 6, 8)), rng.choice((0, 2)))   # counts
    elif kind == 4:
        wire += rng.randbytes(rng.randrange(1, 20))              # octets after the message
    elif kind == 5:
        wire = wire[:rng.randrange(1, len(wire))]                # cut off
    elif kind == 6:
        wire[12] = rng.choice((0, 64, 0xC0, 255))                # first label's length
    else:
        at = rng.randrange(12, len(wire))
        wire[at] ^= 1 << rng.randrange(8)                        # one bit
    return bytes(wire)


@pytest.mark.limit(120)
@pytest.mark.parametrize("family", (4, 6))
def test_whole_messages(path, family):
    rng = random.Random(SEED + family)
    before = path.daemon.reasons()["ANSWERED"]
    differences = []
    for i in range(QUERIES // 2):
        wire = odd(rng) if rng.random() < 0.1 else ordinary(rng)
        direct = exchange(path.network.resolver, SERVICE[family], wire, timeout=0.15)
        kernel = exchange(path.network.client1, SERVICE[family], wire, timeout=0.15 if direct is None else 2)
        found = difference(kernel, direct)
        if found and kernel and direct and is_older(kernel, direct):
            time.sleep(SETTLE)
            found = difference(exchange(path.network.client1, SERVICE[family], wire),
                               exchange(path.network.resolver, SERVICE[family], wire))
            if found:
                differences.append(f"query {i} {wire.hex()}: not settled: {found}")
        elif found and difference(kernel, exchange(path.network.resolver, SERVICE[family], wire, timeout=0.15)):
            # not explained by Unbound having renewed the answer between the two
            differences.append(f"query {i} {wire.hex()}: {found}")
    answered = path.daemon.reasons()["ANSWERED"] - before
    print(f"{QUERIES // 2} queries, {answered} answered in the kernel, {len(differences)} differences")
    assert not differences, "\n".join(differences[:10])
    assert answered > QUERIES // 2 * 0.2, "too few queries met the kernel path"
