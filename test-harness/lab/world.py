# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The whole lab: a run with its network and the authoritative server; resolver and daemon on request."""

import signal
import sys
from contextlib import ExitStack

from . import changing_zones, network
from .client import ask
from .network import Network
from .relay import Relay
from .run import Run, wait_until
from .servers import Hydnsd, Named, Nsd, Unbound
from .tools import Tools


def exit_on_signals():
    """Makes SIGTERM and SIGHUP end the program by an exception, so that every context manager cleans up."""
    def leave(number, frame):
        sys.exit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


class World:
    """Context manager: network and authoritative server. make_tree(directory, addresses) writes the generated zones to serve;
    without it the server has the zones of changing_zones.py, whose data tests may change."""

    TREE_ADDRESSES = ("10.53.5.53", "fd53:5::53")

    def __init__(self, make_tree=None):
        self.tools = Tools()
        self.make_tree = make_tree
        self.anchors = ()
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            self.run = stack.enter_context(Run())
            self.network = Network(self.run, self.tools.pass_object)
            if self.make_tree:
                self._start_tree(stack)
            else:
                self._start_lab(stack)
            self.run.set_baseline()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def _start_tree(self, stack):
        self.tree = self.run.dir / "tree"
        self.make_tree(self.tree, self.TREE_ADDRESSES)
        self.hints = self.tree / "root.hints"
        self.anchors = (self.tree / "trust-anchor.key",)
        self.nsd = stack.enter_context(Nsd(self, self.network.authoritative, "nsd",
                                           (self.tree / "nsd-zones.conf").read_text(), self.tree, ".",
                                           self.TREE_ADDRESSES))

    def _start_lab(self, stack):
        self.zones = changing_zones.Zones(self.run.dir / "lab")
        self.hints = self.zones.directory / "hints"
        server = self.network.authoritative
        files = self.zones.directory
        stack.enter_context(Nsd(self, server, "nsd-upper", changing_zones.UPPER_ZONES, files, ".",
                                changing_zones.UPPER_ADDRESSES))
        self.nsd = stack.enter_context(Nsd(self, server, "nsd-lab", changing_zones.LAB_ZONES, files, "lab.example.",
                                           changing_zones.LOWER_ADDRESSES))
        self.relay = stack.enter_context(Relay(server, changing_zones.RELAY, changing_zones.LAB))

    def reset(self):
        """Restores the data of lab.example. and the relay's behaviour, and removes the files, programs and pins that tests have
        added. A test that changes addresses, routes, links or hop limits restores them itself; the zone's serial goes on. Only
        for a world without make_tree, while nothing else is running."""
        self.run.reset()
        self.relay.behave()
        self.relay.asked.clear()
        if not self.zones.is_original():
            self.rewrite_lab(changing_zones.records())

    def hydnsd(self, *, links=network.LINKS, **options):
        """A daemon for these links, not yet started."""
        return Hydnsd(self, self.network.resolver, links, **options)

    def unbound(self, daemon=None, **options):
        """The resolver under test, not yet started; without a daemon it is the resolver alone."""
        return Unbound(self, self.network.resolver, "unbound", network.SERVICE, self.hints, anchors=self.anchors,
                       hydns=daemon.plugin_socket if daemon else None, **options)

    def named(self, daemon=None, *, anchors=None, **options):
        """BIND as the resolver under test, not yet started."""
        return Named(self, self.network.resolver, "named", network.SERVICE, self.hints, anchors=anchors or self.anchors,
                     hydns=daemon.plugin_socket if daemon else None, **options)

    def reference(self, **options):
        """The same resolver without the kernel path at its own address, not yet started."""
        return Unbound(self, self.network.resolver, "reference", network.REFERENCE, self.hints,
                       anchors=self.anchors, **options)

    def named_reference(self, **options):
        """BIND as the reference, not yet started."""
        return Named(self, self.network.resolver, "reference", network.REFERENCE, self.hints, anchors=self.anchors, **options)

    def heat(self, daemon, name, rdtype="A", *, server=network.SERVICE[4], seconds=10, **options):
        """Asks for a name until explain says that the kernel answers it."""
        wait_until(lambda: self._asked(daemon, name, rdtype, server, options)["where"] == "kernel", seconds,
                   f"{name} {rdtype} to be answered in the kernel")

    def not_offered(self, daemon, name, text, rdtype="A", *, server=network.SERVICE[4], seconds=10, **options):
        """Asks for a name until explain gives this not-offered reason. That the rule is missing would prove nothing: one may
        come a moment later."""
        def said():
            explain = self._asked(daemon, name, rdtype, server, options)
            return explain["where"] == "resolver" and text in explain["text"]
        wait_until(said, seconds, f"explain {name} {rdtype} to say: {text}")

    def _asked(self, daemon, name, rdtype, server, options):
        for _ in range(20):
            ask(self.network.client1, server, name, rdtype, **options)
        asked = {key: options[key] for key in ("edns", "payload", "cookie") if key in options}
        return daemon.explain(name, rdtype, do=options.get("dnssec", False), norec=not options.get("rd", True), **asked)

    def change_lab(self, content, name, rdtype, expected):
        """Changes lab.example. at the authoritative server; returns when NSD serves the expected text for the name."""
        self.zones.write(content)

        def shows():
            reply = ask(self.network.authoritative, changing_zones.LAB, name, rdtype, timeout=0.5)
            return reply and any(expected in str(rrset) for rrset in reply.answer)
        self.nsd.reload("lab.example.", shows)

    def rewrite_lab(self, content):
        """Writes any content to lab.example. at the authoritative server; returns when NSD serves it. The resolver is not
        notified."""
        serial = f'"{self.zones.serial + 1}"'
        self.change_lab({**content, changing_zones.SERIAL: [f"300 TXT {serial}"]}, f"{changing_zones.SERIAL}.lab.example",
                        "TXT", serial)
