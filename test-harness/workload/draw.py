# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Draws queries: names by Zipf's law over the ranks of names.tsv, types by the kind of name, and names that never repeat. One
seed gives one sequence."""

import csv
import hashlib
from dataclasses import dataclass

import numpy as np

TYPES = ("A", "AAAA", "HTTPS", "MX", "TXT")
MAIL_FACTOR = 10        # how much more often a mail domain is asked for MX and TXT than another name
FRESH_AAAA = 0.3        # share of AAAA among never-repeated names, the rest A
FRESH_SERIAL_BITS = 40  # for the queries of one run; the rest of 64 bits is the run index
BASE32 = np.frombuffer(b"0123456789abcdefghijklmnopqrstuv", dtype=np.uint8)
FRESH_DIGITS = 13       # base 32 digits of a 64-bit number


class WorkloadError(ValueError):
    """The options cannot be met; the text says why and how to mend it."""


@dataclass
class Names:
    """The first names of names.tsv, most popular first."""
    names: list
    profile: np.ndarray     # of each: HOST, MAIL or TEXT


HOST, MAIL, TEXT = range(3)             # asked for addresses; for mail too; for TXT alone


def read_table(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


def read_names(path, limit):
    rows = read_table(path)
    if len(rows) < limit:
        raise WorkloadError(f"{path} holds {len(rows)} names, {limit} are wanted: lower --names or generate more")
    rows = rows[:limit]
    profile = [TEXT if r["kind"] == "text" else MAIL if "MX" in r["types"].split(",") else HOST for r in rows]
    return Names([r["name"] for r in rows], np.array(profile))


def read_suffixes(path, wildcard_share, secure_share):
    """Suffixes for never-repeated names and the probability of each."""
    rows = read_table(path)
    weights = []
    for r in rows:
        like = [x for x in rows if (x["kind"], x["secure"]) == (r["kind"], r["secure"])]
        kind = wildcard_share if r["kind"] == "wildcard" else 1 - wildcard_share
        weights.append(kind * (secure_share if r["secure"] == "1" else 1 - secure_share) / len(like))
    if sum(weights) <= 0:
        raise WorkloadError(f"{path} has no suffix of the kinds wanted: change the --fresh options")
    return [r["suffix"] for r in rows], np.array(weights) / sum(weights)


def zipf(count, exponent):
    """Probability of each rank 1..count."""
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return weights / weights.sum()


def type_tables(mix):
    """Probability of each of TYPES, one row for each of HOST, MAIL, TEXT."""
    host = np.array([mix[t] for t in TYPES], dtype=float)
    mail = host * [MAIL_FACTOR if t in ("MX", "TXT") else 1 for t in TYPES]
    text = np.array([t == "TXT" for t in TYPES], dtype=float)
    return np.stack([table / table.sum() for table in (host, mail, text)])


def choose(rng, probabilities, count):
    """Indices by inversion; like Generator.choice, several times faster."""
    edges = np.cumsum(probabilities)
    return np.minimum(np.searchsorted(edges, rng.random(count) * edges[-1], side="right"), len(edges) - 1)


def scramble(numbers, key):
    """A permutation of the 64-bit numbers, so that serials do not look like serials: odd multiplications and
    shifted exclusive-ors, each invertible."""
    x = numbers ^ np.uint64(key)
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x = (x ^ (x >> np.uint64(31))) * np.uint64(multiplier)
    return x ^ (x >> np.uint64(29))


def fresh_labels(count, run_index, seed):
    """Labels that differ within a run and, for one seed, between runs of different index."""
    if count >= 1 << FRESH_SERIAL_BITS or not 0 <= run_index < 1 << (64 - FRESH_SERIAL_BITS):
        raise WorkloadError(f"run index {run_index} or {count} never-repeated names is more than there are labels for")
    serials = (np.uint64(run_index) << np.uint64(FRESH_SERIAL_BITS)) | np.arange(count, dtype=np.uint64)
    key = int.from_bytes(hashlib.sha256(f"fresh {seed}".encode()).digest()[:8], "little")
    numbers = scramble(serials, key)
    shifts = np.arange(0, 5 * FRESH_DIGITS, 5, dtype=np.uint64)
    digits = BASE32[((numbers[:, None] >> shifts) & np.uint64(31)).astype(np.intp)]
    text = digits.tobytes().decode()
    return [text[i:i + FRESH_DIGITS] for i in range(0, len(text), FRESH_DIGITS)]


@dataclass
class Draw:
    """Query i is `lines[i]`, "name type\\n"; rank[i] from 0, or -1 for a never-repeated name."""
    lines: list
    rank: np.ndarray
    type: np.ndarray
    client: np.ndarray


def draw(names, suffixes, options):
    """options: count, seed, run_index, zipf, fresh, type_mix, clients (probability of each class)."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(
        f"workload {options.seed} {options.run_index}".encode()).digest()[:16], "little"))
    count = options.count
    rank = choose(rng, zipf(len(names.names), options.zipf), count)
    edges = np.cumsum(type_tables(options.type_mix), axis=1)[names.profile[rank]]
    kind = np.minimum((rng.random(count)[:, None] >= edges).sum(axis=1), len(TYPES) - 1)
    fresh = np.flatnonzero(rng.random(count) < options.fresh)
    client = choose(rng, np.array(options.clients), count)
    kind[fresh] = np.where(rng.random(len(fresh)) < FRESH_AAAA, TYPES.index("AAAA"), TYPES.index("A"))
    suffix = choose(rng, suffixes[1], len(fresh))
    lines = [f"{names.names[r]} {TYPES[t]}\n" for r, t in zip(rank.tolist(), kind.tolist())]
    labels = fresh_labels(len(fresh), options.run_index, options.seed)
    for at, label, s in zip(fresh.tolist(), labels, suffix.tolist()):
        lines[at] = f"{label}.{suffixes[0][s]} {TYPES[kind[at]]}\n"
    rank[fresh] = -1
    return Draw(lines, rank, kind, client)
