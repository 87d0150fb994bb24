# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Records at once what helps to find a difference's cause, because it may never come again: what was asked and answered when,
the ends of the RRsets, both servers' caches, the rules, what the servers asked the authoritative server, clocks and logs."""

import json
import shutil
import threading
from pathlib import Path

import dns.exception
import dns.message

from lab.capture import messages
from lab.compare import OPT, Unreadable, rrsets
from lab.process import Program

from . import clocks, show, shrink
from .asking import KERNEL

MOST = 3                 # differences to record of a run; later ones seldom say more
RULES = 1000
CAPTURE = Path(__file__).resolve().parent.parent / "lab" / "capture.py"


def ends(flow, data):
    """Lines: when the RRsets of each reply end, in seconds since the kernel path was asked, and when the server must have
    received them if with the zone's own TTL."""
    lines = []
    for place, title in show.PLACES.items():
        try:
            groups = rrsets(flow.replies[place], bytes.lower) if flow.replies[place] else []
        except Unreadable:
            groups = []
        sent, got = ((at[place] - flow.sent[KERNEL]) / 1e9 for at in (flow.sent, flow.got))
        for (_, owner, rtype, _, covered), _, ttls in groups:
            if rtype == OPT:
                continue
            zone = data.limit(owner, int.from_bytes(covered, "big") or rtype)
            first, last = sent + max(ttls), got + max(ttls) + 1
            lines.append(f"{title}: {owner} type {rtype} TTL {max(ttls)}: ends {first:+.2f} to {last:+.2f}"
                         + (f", got {first - zone:+.2f} to {last - zone:+.2f} (zone: {zone})" if zone is not None else ""))
    return lines


def _names(flow):
    """Owner names of all records in the replies, in lower case."""
    found = set()
    for wire in flow.replies:
        try:
            found |= {key[1] for key, _, _ in rrsets(wire, bytes.lower)} if wire else set()
        except Unreadable:
            pass
    return found - {b"\0"}


def asked_upstream(path, names, since):
    """Lines: messages between the servers and the authoritative server about these names, with seconds since a wall clock time
    (ns)."""
    lines = []
    for m in messages(path):
        try:
            message = dns.message.from_wire(m.wire, ignore_trailing=True)
        except (dns.exception.DNSException, ValueError):
            continue
        asked = {q.name.canonicalize().to_wire() for q in message.question}
        held = {rrset.name.canonicalize().to_wire() for rrset in message.answer}
        if names & (asked | held):
            lines.append(f"{(m.at - since) / 1e9:+.4f} {m.source[0]}:{m.source[1]} > {m.to[0]}:{m.to[1]} id {message.id} "
                         + "; ".join(map(str, message.question)) + "".join(f"\n     {rrset}" for rrset in message.answer))
    return lines


class Recorder:
    """Context manager: captures the authoritative server's traffic; note() records a difference in a thread. directory: gets a
    subdirectory for each difference."""

    def __init__(self, stand, data, directory):
        self.stand, self.data, self.directory = stand, data, directory
        self.apart = clocks.to_wall()
        self.count, self.threads = 0, []

    def __enter__(self):
        world = self.stand.world
        self.packets = world.run.dir / "upstream.packets"
        self.packets.unlink(missing_ok=True)
        self.capture = Program(world.run, world.network.authoritative, "capture", [CAPTURE, "u0", self.packets])
        self.capture.wait_ready(self.packets.exists, 10)
        return self

    def __exit__(self, *exc):
        for thread in self.threads:
            thread.join(60)
        self.capture.stop()

    def record(self, found):
        """Records a difference that was just found. Returns at once: waiting would delay other replies, which would then
        differ as well."""
        if self.count >= MOST:
            return
        self.count += 1
        into = self.directory / f"seed-{self.stand.seed}-{self.count}"
        thread = threading.Thread(target=self._record, args=(found, into), name="recorder", daemon=True)
        self.threads.append(thread)
        thread.start()

    def _record(self, found, into):
        into.mkdir(parents=True, exist_ok=True)
        daemon, flow = self.stand.daemon, found.flow
        # what changes soonest comes first
        for name, make in (
                ("rule", lambda: shrink.explain(daemon, flow.wire)),
                ("rules", lambda: json.dumps(daemon.call({"cmd": "rules", "limit": RULES}), indent=1)),
                ("stats", lambda: json.dumps(daemon.call({"cmd": "stats"}), indent=1)),
                ("cache-under-test", self.stand.tested.cache), ("cache-reference", self.stand.reference.cache),
                ("difference", lambda: "\n".join(show.difference(found) + ends(flow, self.data) + self._times(flow))),
                ("upstream", lambda: "\n".join(asked_upstream(self.packets, _names(flow), flow.sent[KERNEL] + self.apart)))):
            try:
                text = make()
            except Exception as error:      # any error: record the rest, and let the run go on
                text = f"not to be had: {type(error).__name__}: {error}"
            (into / name).write_text(text + "\n")
        for log in self.stand.world.run.dir.glob("*.log"):
            shutil.copy(log, into)

    def _times(self, flow):
        at = {title: (flow.sent[place], flow.got[place]) for place, title in show.PLACES.items() if flow.sent[place]}
        return [f"{title}: asked {(sent - flow.sent[KERNEL]) / 1e6:+.1f} ms, "
                + (f"reply read {(got - flow.sent[KERNEL]) / 1e6:+.1f} ms" if got else "no reply")
                for title, (sent, got) in at.items()] + [
            f"the kernel path was asked at {(flow.sent[KERNEL] + self.apart) / 1e9:.4f} of the wall clock, which has moved by "
            f"{(clocks.to_wall() - self.apart) / 1e6:+.3f} ms against the monotonic one since the run began"]
