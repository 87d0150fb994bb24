# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones and workload for a run, made by their generators.

The workload generator writes one file of questions for each class of clients (network, EDNS, DO, cookie). A dnsperf process
can send only one class of such questions. So the classes of a network are mixed here, in random order, into a file of whole
query messages, which one dnsperf sends unchanged (-B)."""

import itertools
import json
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import dns.rdatatype

from .network import SERVICE
from .run import HarnessError
from .tools import TOP

# above what a closed loop is expected to reach, so that names to be asked once do not come again
CLOSED_LOOP_RATE = 150000
RECURSION_RATE = 50000     # the same for queries that all need recursion
NETWORKS = {"a": (1, 4), "b": (2, 6)}     # {the generator's network: (client, IP version)}
EDNS_PAYLOAD = 1232
FIRST_ROUND = 3            # run indices below are those of workload() and never_repeated()


@dataclass
class Stream:
    """The queries of one client network: a file for dnsperf -B."""
    file: Path
    client: int          # 1 or 2
    server: str
    share: float         # of all queries


@dataclass
class Workload:
    streams: list
    probes: dict         # IP version -> [(name, type)]
    warm: Path           # for dnsperf: once every question of the workload whose name repeats
    names: list          # most popular first
    facts: dict          # what the generator drew, for the report

    @property
    def description(self):
        f = self.facts
        return (f"{f['queries']:,} queries, Zipf {f['zipf']} over {f['names']:,} names, {f['fresh']['drawn']:.1%} never "
                f"repeated; with EDNS {f['edns']['edns']:.0%}, DO {f['edns']['do']:.0%}, cookie {f['edns']['cookie']:.0%}")


def _generate(argv):
    done = subprocess.run([sys.executable, "-B", *map(str, argv)], capture_output=True, text=True)
    if done.returncode != 0:
        raise HarnessError(f"{' '.join(map(str, argv))}: {(done.stderr or done.stdout).strip()}")


def tree(directory, addresses, seed, *options):
    """Writes the zones for a name server with these addresses. options: more options of the generator."""
    _generate([TOP / "zones" / "generate", directory, "--seed", seed, *options, *(f"--address={a}" for a in addresses)])


def _draw(world, directory, seed, index, count, fresh):
    _generate([TOP / "test-harness" / "workload" / "workload", world.tree, directory, "--seed", seed,
               "--run-index", index, "--count", count, "--fresh", fresh])
    return json.loads((directory / "workload.json").read_text())


def _opt(c):
    """The OPT record of a class (RFC 6891), b'' without EDNS."""
    if not c["edns"]:
        return b""
    options = b""
    if c["cookie"]:
        number, value = c["dnsperf"][c["dnsperf"].index("-E") + 1].split(":")
        value = bytes.fromhex(value)
        options = int(number).to_bytes(2, "big") + len(value).to_bytes(2, "big") + value
    flags = b"\x80\x00" if c["do"] else b"\0\0"
    return (b"\0\0\x29" + EDNS_PAYLOAD.to_bytes(2, "big") + b"\0\0" + flags + len(options).to_bytes(2, "big") + options)


def _framed(lines, opt, recursion_desired):
    """Yields each line "name type" as a query message after its length (RFC 1035 section 4.2.2)."""
    head = b"\0\0" + (b"\x01" if recursion_desired else b"\0") + b"\0\0\x01\0\0\0\0" + (b"\0\x01" if opt else b"\0\0")
    tails = {}
    for line in lines:
        name, rdtype = line.split()
        tail = tails.get(rdtype)
        if tail is None:
            number = dns.rdatatype.from_text(rdtype.decode())
            tail = tails[rdtype] = b"\0" + number.to_bytes(2, "big") + b"\0\x01" + opt
        message = head + b"".join([bytes((len(label),)) + label for label in name.split(b".")]) + tail
        yield len(message).to_bytes(2, "big") + message


def _mix(directory, classes, output, rng, recursion_desired):
    """Writes one file with the queries of all classes in random order."""
    messages = []
    for c in classes:
        messages += _framed((directory / c["file"]).read_bytes().splitlines(), _opt(c), recursion_desired)
    rng.shuffle(messages)
    output.write_bytes(b"".join(messages))


def _probes(directory, facts):
    """{IP version: questions} for the probers: all questions of all classes, in random order."""
    lines = [line for c in facts["classes"] for line in (directory / c["file"]).read_text().splitlines()]
    random.Random(f"probes {facts['seed']}").shuffle(lines)
    questions = [tuple(line.split()) for line in lines]
    half = len(questions) // 2
    return {4: questions[:half], 6: questions[half:]}


def _warm(directory, facts, names, output):
    """Writes each distinct question of the workload whose name repeats."""
    known, questions = set(names), set()
    for c in facts["classes"]:
        questions.update((directory / c["file"]).read_text().splitlines())
    output.write_text("".join(f"{q}\n" for q in sorted(questions) if q.partition(" ")[0] in known))


def _streams(directory, facts, seed, recursion_desired=True):
    """Writes a file of mixed queries for each client network; returns the Streams."""
    streams = []
    for network, (client, version) in NETWORKS.items():
        classes = [c for c in facts["classes"] if c["subnet"] == network]
        file = directory / f"{network}.messages"
        if not any((directory / c["file"]).stat().st_size for c in classes):
            raise HarnessError(f"{facts['queries']} queries are so few that one of the clients has none: give more --queries")
        _mix(directory, classes, file, random.Random(f"mix {seed} {network}"), recursion_desired)
        streams.append(Stream(file, client, SERVICE[version], sum(c["share"] for c in classes)))
    return streams


def never_repeated(world, seed, seconds):
    """Streams of queries for names that never repeat and that workload() does not use."""
    directory = world.run.dir / "fresh"
    return _streams(directory, _draw(world, directory, seed, 2, seconds * RECURSION_RATE, 1), seed)


def fresh_rounds(world, seed, seconds, rate, fresh, recursion_desired=True):
    """Yields the Streams of one round after another: the same popularity, and never-repeated names that workload() and former rounds do not
    have. The files of a round go when the one after the next is made."""
    for index in itertools.count(FIRST_ROUND):
        directory = world.run.dir / f"round{index}"
        yield _streams(directory, _draw(world, directory, seed, index, seconds * rate, fresh), f"{seed} {index}", recursion_desired)
        shutil.rmtree(world.run.dir / f"round{index - 1}", ignore_errors=True)


def workload(world, seed, seconds, rate, queries, probes, fresh, recursion_desired=True):
    """Draws the load of one measurement and so many probes; writes files into the run's directory. fresh: share of
    never-repeated names; recursion_desired: the queries have RD."""
    main, small = world.run.dir / "workload", world.run.dir / "probes"
    facts = _draw(world, main, seed, 0, queries or seconds * (rate or CLOSED_LOOP_RATE), fresh)
    streams = _streams(main, facts, seed, recursion_desired)
    sample = _probes(small, _draw(world, small, seed, 1, probes, fresh))
    names = [line.split("\t")[1] for line in (world.tree / "names.tsv").read_text().splitlines()[1:]]
    warm = main / "warm.queries"
    _warm(main, facts, names, warm)
    return Workload(streams, sample, warm, names, {k: v for k, v in facts.items() if k != "classes"})


def _ends(messages, n):
    """Where n parts of about the same size end, each after a whole message."""
    at = 0
    for part in range(1, n + 1):
        while at < len(messages) * part // n:
            at += 2 + int.from_bytes(messages[at:at + 2], "big")
        yield at


def divided(data, n):
    """A Workload as n Workloads with a part of its queries each: for as many runs in which a name to be asked once is."""
    parts = [[] for _ in range(n)]
    for stream in data.streams:
        messages, begin = stream.file.read_bytes(), 0
        for number, end in enumerate(_ends(messages, n)):
            file = stream.file.with_name(f"{stream.file.name}.{number}")
            file.write_bytes(messages[begin:end])
            parts[number].append(replace(stream, file=file))
            begin = end
    return [replace(data, streams=streams) for streams in parts]
