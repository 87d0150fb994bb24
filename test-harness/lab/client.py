# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Clients: single queries from Python, and the program asker for queries at a rate."""

import socket
from collections import namedtuple
from contextlib import contextmanager

import dns.edns
import dns.flags
import dns.message
import dns.rdatatype

from .process import Program
from .run import PATIENCE, HarnessError


SILENCE = 5.0        # seconds after which a query counts as unanswered: longer than a busy machine makes a program wait


def query(name, rdtype="A", *, edns=False, dnssec=False, cookie=None, payload=1232, cd=False, ad=False, rd=True):
    """A query message. cookie: 8 octets of client cookie (RFC 7873), or more with a server cookie."""
    options = [dns.edns.GenericOption(10, cookie)] if cookie else []
    q = dns.message.make_query(name, rdtype, use_edns=0 if edns or dnssec or cookie else -1,
                               want_dnssec=dnssec, payload=payload, options=options or None)
    q.flags = (dns.flags.RD if rd else 0) | (dns.flags.CD if cd else 0) | (dns.flags.AD if ad else 0)
    return q


def exchange(ns, server, wire, *, local=None, port=53, timeout=SILENCE):
    """Sends one UDP payload from the namespace; returns the reply's octets, or None when none came or the port is closed."""
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with ns.entered():
        s = socket.socket(family, socket.SOCK_DGRAM)
    with s:
        s.settimeout(timeout)
        if local:
            s.bind((local, 0))
        try:
            s.connect((server, port))
            s.send(wire)
            return s.recv(65535)
        except (TimeoutError, ConnectionError):
            return None


@contextmanager
def udp(ns, host, port=0):
    """A socket that is bound there, with a time limit."""
    with ns.entered():
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.settimeout(SILENCE)
        s.bind((host, port))
        yield s


def ask(ns, server, name, rdtype="A", *, local=None, port=53, timeout=SILENCE, **options):
    """Asks one question; returns the reply as a dns.message, or None."""
    wire = exchange(ns, server, query(name, rdtype, **options).to_wire(), local=local, port=port, timeout=timeout)
    return None if wire is None else dns.message.from_wire(wire, one_rr_per_rrset=False)


def must_exchange(ns, server, wire, **options):
    """exchange() for tests of a reply's content: a lost query is a HarnessError, so that an attempt can be repeated."""
    reply = exchange(ns, server, wire, **options)
    if reply is None:
        raise HarnessError(f"no reply from {server}")
    return reply


def must_ask(ns, server, name, rdtype="A", **options):
    """ask(), with a HarnessError when no reply comes or the reply has no answer."""
    reply = ask(ns, server, name, rdtype, **options)
    if reply is None or not reply.answer:
        raise HarnessError(f"{name} {rdtype}: " + ("no answer in the reply" if reply else "no reply") + f" from {server}")
    return reply


Answer = namedtuple("Answer", "sent latency question rcode ttl rdata hops first_ttl", defaults=(None, None))
"""One line of asker: sent and latency in ns (latency None: lost), rdata in hex or None. Only with watch: hops, the reply's hop
limit, and first_ttl, the TTL of the answer's first record. first_ttl None: the answer section is empty; ttl and rdata are
those of the SOA in the authority section, rdata its serial."""

Stray = namedtuple("Stray", "at why hops sender")
"""A datagram that answers no query, with watch; src/asker.c lists the values of why."""


class Asker:
    """Context manager: asks in the background; result() ends it and returns what it recorded."""

    count = 0

    def __init__(self, world, ns, server, questions, rate, *, local=None, seconds=None, timeout=10.0, edns=False,
                 dnssec=False, mixed_case=False, watch=False, port=None, under_way=None, queries=None):
        Asker.count += 1
        label = f"asker{Asker.count}"
        run = world.run
        (run.dir / f"{label}.in").write_text("".join(f"{n} {t}\n" for n, t in questions))
        self.output = run.dir / f"{label}.out"
        argv = [world.tools.asker, "-s", server, "-d", run.dir / f"{label}.in", "-o", self.output, "-r", rate,
                "-t", timeout]
        argv += ["-a", local] if local else []
        argv += ["-l", seconds] if seconds else []
        argv += ["-e"] if edns else []
        argv += ["-D"] if dnssec else []
        argv += ["-x"] if mixed_case else []
        argv += ["-w"] if watch else []
        argv += ["-p", port] if port else []
        argv += ["-q", under_way] if under_way else []
        argv += ["-n", queries] if queries else []
        self.strays = []
        self.argv, self.world, self.ns, self.label = argv, world, ns, label
        self.lasts, self.timeout = seconds or (queries and queries / rate), timeout

    def __enter__(self):
        self.program = Program(self.world.run, self.ns, self.label, self.argv)
        return self

    def __exit__(self, *exc):
        self.program.stop()

    def result(self, now=False):
        """Waits for the end, or ends it (without seconds and queries, or with now), and returns the Answers."""
        self.finish(now)
        return list(self.answers())

    def finish(self, now=False):
        if self.lasts and not now:
            self.program.popen.wait(self.lasts + self.timeout + PATIENCE)
        else:
            self.program.stop(seconds=self.timeout + 10)
        if self.program.popen.returncode != 0:
            raise HarnessError(f"asker ended with status {self.program.popen.returncode}: "
                               + self.program.log.read_text())

    def answers(self):
        """After asker's end: yields the Answers in the order of asking, and fills strays."""
        with open(self.output) as lines:
            for line in lines:
                if line.startswith("!"):
                    _, at, why, hops, sender = line.split()
                    self.strays.append(Stray(int(at), why, int(hops), sender))
                    continue
                sent, latency, question, rcode, ttl, rdata, *watched = line.split()
                lost = latency == "-1"
                yield Answer(int(sent), None if lost else int(latency), int(question), None if lost else int(rcode),
                             None if ttl == "-" else int(ttl), None if rdata == "-" else rdata,
                             *(None if word == "-" else int(word) for word in watched))
