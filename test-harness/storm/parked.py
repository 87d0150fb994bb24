# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Kills hydnsd, the resolver or the server that it asks, each time at a random moment while queries are parked, round after round.

Each frame of a client is counted once when it is answered or passed, and once more if it was parked before. So the sum of those
ends, without "parked", must be the number of queries, whoever was killed; only a hydnsd that is killed may lose some, at most as
many as may be parked, and each is one client without a reply. Whom the kernel has answered has a reply, also beside a killed resolver,
which takes along the queries that it has read. After each round nothing is parked, and the resolver's table of
questions under way is empty. In the first half of the rounds hydnsd lives, in the second half the resolver: neither may have more
descriptors or memory at the end of its half than when it had settled, nor the kernel more memory for maps, more elements of any, or
more pins (held.py); and after each half nothing may be left of rules after a flush of all. Few rounds do not show that."""

import random
import signal
import statistics
import time
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from lab import parking, pinned
from lab.client import ask
from lab.crowd import gather
from lab.layouts import layout, number
from lab.network import CLIENT_LINKS, CLIENT1, SERVICE
from lab.others import Others
from lab.process import run_tool
from lab.run import SOON, HarnessError, remains, wait_until
from lab.servers import EVERY_CLIENT_WAITS
from lab.world import World

from . import held

HYDNSD, RESOLVER, UPSTREAM = "hydnsd", "resolver", "upstream"
CLIENTS, SECONDS = 150, 0.06      # of a crowd; fewer than a veth's ring holds, so that no answer finds it full
BOUND = 100                       # hydns-pending-max
LATE = 0.15                       # seconds that the upstream server takes
AWAY = 0.5                        # seconds at most until who was killed is started again
# Of a client, by who was killed: longer than a resolver waits until it asks an upstream server again. What a killed resolver had
# read is lost, and what a killed hydnsd had.
PATIENCE = {UPSTREAM: 6.0, HYDNSD: 4.0, RESOLVER: 1.0}
NAMES = 100                       # of the zone, asked for in turn: caches and known names do not grow
NO_QUERY = ("NOT_IP", "NOT_UDP", "GROUP_ADDRESS", "PARKED")      # reasons that do not end a client's query
SETTLED = 20                      # rounds until a process has all that it needs
SHOWN = 10
FLUSH = {"unbound": "flush", "bind": "flushname"}
WORDS = number("HYDNS_UNDER_WAY_BUCKETS") * number("HYDNS_UNDER_WAY_ENTRIES")


Ends = namedtuple("Ends", "queries unread parked answered")
Round = namedtuple("Round", "missing others parked answered overflows at_once")
"""missing: queries that have neither been answered nor passed, less than 0 if there were more ends than queries; others: frames that
are no queries and may have been counted as passed unread; parked, answered by the program: since it began; overflows: datagrams
that a socket of the resolver had no room for; at_once: parked queries at the moment of the kill."""


@dataclass
class Result:
    rounds: dict = field(default_factory=dict)       # victim: rounds
    parked: int = 0                                  # queries
    met: int = 0                                     # rounds in which some were parked at the moment of the end
    at_once: list = field(default_factory=list)      # parked at that moment
    asked: int = 0
    lost: dict = field(default_factory=dict)         # victim: clients without a reply
    missing: int = 0                                 # frames that a killed hydnsd had in its memory
    most_missing: int = 0                            # of one round
    others: Counter = field(default_factory=Counter) # frames that are no queries, by kind
    held: dict = field(default_factory=dict)         # process that lived: [Held] from when it had settled to the end
    wrong: list = field(default_factory=list)


class Parked:
    """kind: "unbound" or "bind". forwarded.py has other values of these: links with the program, without that to upstream, whose packets
    would be counted, too; reasons that do not end a client's query; who is killed beside whom; whose end takes along queries that it
    has read; how long a client waits."""

    LINKS, NO_QUERY = CLIENT_LINKS, NO_QUERY
    VICTIMS = {HYDNSD: (RESOLVER, UPSTREAM), RESOLVER: (HYDNSD, UPSTREAM)}
    PATIENCE = PATIENCE

    def __init__(self, kind, seed, say):
        self.kind, self.seed, self.say = kind, seed, say
        self.takes_along = (RESOLVER,)
        self.forwarded = 0               # rounds in which some were
        self.rng = random.Random(f"parked {seed}")
        self.result = Result()
        self.asked = 0

    def run(self, rounds):
        """The Result."""
        with World() as world, ExitStack() as stack:
            self.world = world
            self.relay = world.relay
            self._know_neighbours()
            self.daemon = stack.enter_context(world.hydnsd(links=self.LINKS))
            self.resolver = stack.enter_context(self._make())
            self.others = stack.enter_context(Others(world.network.resolver, self.LINKS))
            self._wait_ready()
            half = rounds // 2
            self._stage(HYDNSD, self.daemon, half)
            self._stage(RESOLVER, self.resolver, rounds - half)
        self.result.wrong += [f"left: {what}" for what in remains(world.run.id)]
        return self.result

    def _make(self):
        if self.kind == "unbound":
            return self.world.unbound(self.daemon, clause=(f"hydns-pending-max: {BOUND}",))
        return self.world.named(self.daemon, options=(EVERY_CLIENT_WAITS,), clause=(f"hydns-pending-max {BOUND};",))

    def _know_neighbours(self):
        """For ever, so that no frame but the clients' queries comes in."""
        network = self.world.network
        for ns, link, other, there, host in ((network.resolver, "r1", network.client1, "c1", CLIENT1[4]),
                                             (network.client1, "c1", network.resolver, "r1", "10.53.1.1")):
            with other.netlink() as ip:
                mac = ip.get_links(ip.link_lookup(ifname=there)[0])[0].get_attr("IFLA_ADDRESS")
            run_tool(ns, ["ip", "neigh", "replace", host, "lladdr", mac, "dev", link, "nud", "permanent"])

    def _ask_past(self, name):
        """Past the program, so that nothing is counted."""
        return ask(self.world.network.resolver, SERVICE[4], name, local=SERVICE[4], timeout=0.5)

    def _wait_ready(self):
        def ready():
            self._ask_past("lab.example")         # BIND's plugin starts with the first response
            return self.daemon.resolver_ready()
        wait_until(ready, SOON, "the resolver to register with hydnsd")

    # -- tables ----------------------------------------------------------------------------------------------
    def waiting(self):
        return parking.waiting(self.daemon)

    def under_way(self):
        """Words in the tables of questions under way of all pages."""
        page, entry = layout("hydns_resolver_page").size, layout("hydns_under_way")
        count = 0
        for pin in self.daemon.pins.glob("page_*"):
            with pinned.writable(pin) as memory:
                table = memory[page:page + WORDS * entry.size]
            count += sum(any(table[at:at + 8]) for at in range(0, len(table), entry.size))
        return count

    def ends(self):
        """How many queries were answered or passed; how many frames of any kind passed unread; how many queries were parked, and
        answered by the program."""
        reasons = self.daemon.reasons()
        return Ends(sum(n for name, n in reasons.items() if name not in self.NO_QUERY), reasons["EMPTY"], reasons["PARKED"],
                    reasons["ANSWERED"])

    # -- a round ---------------------------------------------------------------------------------------------
    def _stage(self, name, process, rounds):
        """process lives for so many rounds."""
        found = self.result.held[name] = []
        for n in range(rounds):
            self._round(self.rng.choice(self.VICTIMS[name]))
            if (n + 1) % SETTLED == 0:
                found.append(held.take(process, self.daemon))
                self.say(f"{name} lives: {n + 1} rounds of {rounds}, {self.result.parked:,} parked, "
                         f"{len(self.result.wrong)} findings")
        if rounds > SETTLED:
            found.append(held.take(process, self.daemon))
            self._compare(name, found[0], found[-1])
        self._nothing_left(name)

    def _compare(self, name, before, after):
        heap, memory = held.HEAP_MOST, held.MEMORY_MOST
        if name == HYDNSD:
            heap = held.HYDNSD_HEAP_MOST
            memory = heap + self.daemon.call({"cmd": "status"})["daemon_bytes"]
        for what in held.grown(before, after, heap, memory):
            self._wrong(f"{name} lived: {what}")

    def _wrong(self, text):
        self.result.wrong.append(text)
        if len(self.result.wrong) <= SHOWN:
            self.say(text)

    def _prepare(self):
        """Before a round's flush."""

    def _judge_answers(self, where, crowd):
        """What clients got."""

    def _sent(self):
        """Requests that the kernel has sent to upstream servers."""
        return 0

    def _round(self, victim):
        result = self.result
        name = f"host{self.asked % NAMES}.lab.example"
        self.asked += 1
        self._prepare()
        self.resolver.control(FLUSH[self.kind], name)
        self.relay.delay = LATE
        self.others.take()
        before, sent = self.ends(), self._sent()
        overflows = self.world.network.resolver.udp_overflows()
        with ThreadPoolExecutor(1) as pool:
            clients = pool.submit(gather, self.world, self.world.network.client1, SERVICE[4], [(name, "A")], CLIENTS, SECONDS,
                                  timeout=self.PATIENCE[victim])
            at_once = self._end(victim, clients)
            crowd = clients.result(SOON)
        self.relay.behave()
        self._settle(name)
        overflows = self.world.network.resolver.udp_overflows() - overflows
        ends, unread, came, answered = (now - then for now, then in zip(self.ends(), before))
        others = self.others.take()
        result.others += others
        result.rounds[victim] = result.rounds.get(victim, 0) + 1
        result.lost[victim] = result.lost.get(victim, 0) + crowd.lost
        result.asked, result.parked = result.asked + crowd.asked, result.parked + came
        result.met += at_once > 0
        self.forwarded += self._sent() > sent
        result.at_once.append(at_once)
        self._judge(victim, crowd, Round(crowd.asked - ends, min(unread, others.total()), came, answered, overflows,
                                          at_once))

    def _end(self, victim, clients):
        """Kills at a random moment from the first parked query on, and starts again; how many were parked at that moment."""
        moment, away = self.rng.uniform(0, LATE + SECONDS), self.rng.uniform(0, AWAY)
        while not self.waiting() and not clients.done():
            time.sleep(0.001)
        time.sleep(moment)
        at_once = self.waiting()
        if victim == UPSTREAM:
            self.relay.gone = True
            time.sleep(away)
            self.relay.gone = False
            return at_once
        self._end_process(victim, away)
        return at_once

    def _end_process(self, victim, away):
        process = self.daemon if victim == HYDNSD else self.resolver
        process.stop(signal.SIGKILL)
        time.sleep(away)
        process.start()

    def _tables(self):
        """(what, how many): 0 after a round."""
        return (("queries parked", self.waiting), ("questions under way", self.under_way),
                ("questions pending", lambda: len(self.daemon.call({"cmd": "pending"})["questions"])),
                ("octets unread in hydns_parked", lambda: pinned.unread(self.daemon.pins / "hydns_parked")))

    def _settle(self, name):
        self._wait_ready()
        # a resolution that is still under way ends before this answer
        wait_until(lambda: self._ask_past(name), SOON, f"an answer for {name}")
        for what, count in self._tables():
            self._wait_for_none(f"round {self.asked}", what, count)

    def _wait_for_none(self, where, what, count):
        try:
            wait_until(lambda: count() == 0, SOON, f"no {what}")
        except HarnessError:
            self._wrong(f"{where}: {count()} {what} are left")

    def _judge(self, victim, crowd, r):
        """Without a rule, as after a resolver's end, frames pass unread, and the program counts those of neighbours like queries."""
        missing = r.missing
        where = f"round {self.asked}, {victim} killed beside {r.at_once} parked, {r.parked} parked in all"
        if crowd.twice or crowd.strays:
            self._wrong(f"{where}: {crowd.twice} second replies, {len(crowd.strays)} that answer no query")
        if missing > (min(BOUND, r.parked) if victim == HYDNSD else 0):
            self._wrong(f"{where}: {missing} of {crowd.asked} queries have come to no end")
        if missing < -r.others:
            self._wrong(f"{where}: {-missing} queries have come to two ends")
        self._judge_answers(where, crowd)
        if victim not in self.takes_along and crowd.lost > max(0, missing) + r.overflows:
            self._wrong(f"{where}: {crowd.lost} clients have no reply, and {missing} queries were lost with hydnsd")
        if crowd.asked - crowd.lost < r.answered:
            self._wrong(f"{where}: {r.answered} queries were answered in the kernel, and {crowd.asked - crowd.lost} clients have a reply")
        self.result.missing += max(0, missing)
        self.result.most_missing = max(self.result.most_missing, missing)

    def _index_words(self):
        with pinned.writable(self.daemon.pins / "hydns_index") as memory:
            return sum(any(memory[at:at + 8]) for at in range(0, len(memory), 8)) if any(memory[:]) else 0

    def _nothing_left(self, name):
        """Of rules, their slots and the index, after a flush of all. Slots are free after a grace period."""
        self.daemon.ctl("flush", "--all")
        for what, count in (*((field, lambda field=field: self.daemon.call({"cmd": "status"})[field])
                              for field in ("rules", "limbo", "slot_bytes")), ("entries of the index", self._index_words)):
            self._wait_for_none(f"{name} lived, after a flush of all", what, count)


def figures(name, seed, run):
    """What --json writes, of a Parked that has run."""
    result = run.result
    return {"server": name, "seed": seed, "rounds": result.rounds, "rounds_with_parked": result.met,
            "rounds_with_forwarded": run.forwarded, "asked": result.asked,
            "parked": result.parked, "parked_at_the_end": statistics.median(result.at_once) if result.at_once else 0,
            "lost": result.lost, "lost_with_hydnsd": result.missing, "lost_with_hydnsd_at_once": result.most_missing,
            "other_frames": result.others,
            "held": {name: [one._asdict() for one in found] for name, found in result.held.items()}, "faults": result.wrong}


def summary(f):
    def pairs(values):
        return ", ".join(f"{name} {n:,}" for name, n in values.items())
    lines = [f"{f['server']}: killed {pairs(f['rounds'])}; in {f['rounds_with_parked']} rounds beside parked queries, "
             f"{f['parked_at_the_end']:.0f} (median)",
             f"{f['asked']:,} queries, {f['parked']:,} parked; clients without a reply, by who was killed: {pairs(f['lost'])}",
             f"lost in the memory of a killed hydnsd: {f['lost_with_hydnsd']:,}, {f['lost_with_hydnsd_at_once']} at once, {BOUND} "
             "allowed"]
    if f["rounds_with_forwarded"]:
        lines.append(f"in {f['rounds_with_forwarded']} rounds queries were forwarded")
    if f["other_frames"]:
        lines.append(f"frames that are no queries: {pairs(f['other_frames'])}")
    for name, (before, after) in ((name, (found[0], found[-1])) for name, found in f["held"].items() if len(found) > 1):
        lines.append(f"{name} beside these: heap {before['heap'] >> 10:,} to {after['heap'] >> 10:,} KiB, "
                     f"memory {before['memory'] >> 10:,} to {after['memory'] >> 10:,} KiB, descriptors "
                     f"{before['descriptors']} to {after['descriptors']}; maps {before['maps'] >> 10:,} to "
                     f"{after['maps'] >> 10:,} KiB, pins {before['pins']} to {after['pins']}, elements of maps "
                     f"{sum(before['elements'].values()):,} to {sum(after['elements'].values()):,}")
    return lines + ["; ".join(f["faults"][:SHOWN]) if f["faults"] else "0 wrong, nothing left"]
