# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Types the commands of a document, and fails at the first that does not do what the document says."""

import time

from . import documents

SOON = 20           # seconds for what a reader would try again


class Follower:
    """A subclass types (type), asks a hot name as a client (ask, with or without DO), and shows what its daemons said (journal)."""

    SOON = SOON

    def follow(self, document, heading, server=None):
        """Types every command of a section for this server."""
        listed = documents.commands(document, heading, server)
        assert listed, f"{document}, '{heading}', has no commands for {server or 'everybody'}"
        print(f"\n-- {document}, \"{heading}\"{f', {server}' if server else ''}")
        for command in listed:
            self.do(command)
        return listed

    def do(self, command):
        began = time.monotonic()
        while True:
            done = self.type(command.text)
            good = done.status == 0 if command.expected is None else documents.shows(command.expected, done.output)
            if good or not may_repeat(command) or time.monotonic() - began > self.SOON:
                break
            time.sleep(0.2)
            if command.text.startswith("hydnsctl explain"):
                self.ask(dnssec="--do" in command.text)
        print(f"# {command.text}\n{shorten(done.output)}[{done.seconds:.1f} s]")
        assert good, f"'{command.text}' ended with status {done.status}" + \
            (f" and did not print '{command.expected}'" if command.expected else "") + f":\n{done.output}\n{self.journal()}"


def found_by_doctor(done):
    """What doctor warns of is the machine's own; a failure is the reader's to mend."""
    failed = [line for line in done.output.splitlines() if line.startswith("fail")]
    assert not failed, f"the reader has to mend: {done.output}"
    return done._replace(status=0)


def may_repeat(command):
    return command.text.startswith(("hydnsctl", "dig", "hydns-rndc", "xdp-loader status"))


def shorten(output, most=12):
    lines = output.splitlines()
    kept = lines if len(lines) <= most else [*lines[:most // 2], f"... {len(lines) - most} lines ...", *lines[-most // 2:]]
    return "".join(f"{line}\n" for line in kept)
