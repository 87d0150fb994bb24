# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Gives commands while queries go on. Records for each the time from before it was given until it had returned: within that
time former and new answers are both right, after it only new ones."""

import threading
import time

from lab.run import HarnessError

QUERIES_BETWEEN = {"flush": 300, "reload": 3000}         # so that most queries are sent while no command is under way


class Disturber:
    """Context manager: a thread that gives commands while a kind is set by begin(), until end()."""

    def __init__(self, commands):
        self.commands = commands
        self.done = []               # (begin, end, what), monotonic ns
        self.begun = None            # monotonic ns, when the command under way was given
        self.fed = 0                 # queries that the feeder has written so far
        self.error = None
        self._kind = None
        self._turn = threading.Condition()
        self._leave = False
        self.thread = threading.Thread(target=self._run, name="disturber", daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        with self._turn:
            self._leave, self._kind = True, None
            self._turn.notify_all()
        self.thread.join(30)

    def begin(self, kind):
        with self._turn:
            self._kind = kind
            self._turn.notify_all()

    def end(self):
        """Returns when no command is under way."""
        with self._turn:
            self._kind = None
            self._turn.notify_all()
            self._turn.wait_for(lambda: self.begun is None, 60)

    def count(self, queries):
        """The feeder has written so many more queries."""
        with self._turn:
            self.fed += queries
            self._turn.notify_all()

    def overlaps(self, begin, end):
        """The command that was under way at some time from begin to end, or None."""
        begun = self.begun
        if begun is not None and begun <= end:
            return "a command that has not returned"
        return next((what for b, e, what in reversed(self.done) if b <= end and e >= begin), None)

    def _run(self):
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._kind or self._leave)
                if self._leave:
                    return
                kind = self._kind
            try:
                self._one(self.commands.draw(kind))
                between = QUERIES_BETWEEN[kind]
            except Exception as error:       # else the run would go on without commands
                self.error = error
                return
            with self._turn:
                at = self.fed + between
                self._turn.wait_for(lambda: self.fed >= at or self._kind != kind)

    def _one(self, action):
        with self._turn:
            self.begun = time.monotonic_ns()
        begun = self.begun
        try:
            what = action()
        finally:
            with self._turn:
                self.done.append((begun, time.monotonic_ns(), action.__name__))
                self.begun = None
                self._turn.notify_all()
        self.done[-1] = (*self.done[-1][:2], what)
