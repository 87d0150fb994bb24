# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A headless Chromium in a namespace, spoken to by its DevTools protocol over two pipes: it needs no port, and no driver."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from contextlib import suppress

from .process import Program
from .run import SOON, HarnessError, wait_until

OPTIONS = ("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
           "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
           "--disable-extensions", "--hide-scrollbars", "--font-render-hinting=none")
KEYS = {"Tab": 9, "Enter": 13, " ": 32}


def _pipe():
    """Its descriptors are none of those that the program gets them at."""
    ends = os.pipe()
    above = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends]
    for fd in ends:
        os.close(fd)
    return above


class Browser:
    """Context manager: one tab. requests: URLs that it has asked for since open(); said: what went wrong in its console."""

    def __init__(self, world, ns):
        if not shutil.which("chromium"):
            raise HarnessError("there is no chromium: install the Debian package chromium")
        self.world, self.ns = world, ns
        self.requests, self.said, self.last, self.session, self.unread = [], [], 0, None, b""

    def __enter__(self):
        here, there = _pipe(), _pipe()     # what we send, what it sends
        self.to, self.back = here[1], there[0]
        home = self.world.run.dir / f"browser-{os.getpid()}-{time.monotonic_ns()}"
        argv = ["chromium", *OPTIONS, f"--user-data-dir={home}", "about:blank"]
        try:
            self.program = Program(self.world.run, self.ns, "chromium", ["bash", "-c", f'exec "$@" 3<&{here[0]} 4>&{there[1]}', "bash", *argv],
                                   pass_fds=(here[0], there[1]))
        finally:
            os.close(here[0])
            os.close(there[1])
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _attach(self):
        pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        target = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __exit__(self, *exc):
        with suppress(HarnessError, OSError):
            self.session = None
            self.call("Browser.close")
        self.program.stop(signal.SIGTERM)
        for fd in (self.to, self.back):
            os.close(fd)

    # -- the protocol ------------------------------------------------------------------------------------------
    def call(self, method, **arguments):
        """The result of a method."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": arguments}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        number, deadline = self.last, time.monotonic() + 2 * SOON
        while True:
            reply = self._message(deadline, method)
            if reply.get("id") == number:
                if "error" in reply:
                    raise HarnessError(f"{method}: {reply['error']['message']}")
                return reply["result"]

    def _message(self, deadline, what):
        while b"\0" not in self.unread:
            if not select.select([self.back], [], [], max(0, deadline - time.monotonic()))[0]:
                raise HarnessError(f"chromium did not reply to {what}")
            more = os.read(self.back, 1 << 16)
            if not more:
                self.program.must_run()
                raise HarnessError("chromium has closed its pipe")
            self.unread += more
        line, _, self.unread = self.unread.partition(b"\0")
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method, p):
        if method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.said.append(p["exceptionDetails"].get("exception", {}).get("description", p["exceptionDetails"]["text"]))
        elif method == "Log.entryAdded" and p["entry"]["level"] == "error":
            self.said.append(p["entry"]["text"])

    # -- the tab ---------------------------------------------------------------------------------------------
    def open(self, url):
        self.requests, self.said = [], []
        result = self.call("Page.navigate", url=url)
        if "errorText" in result:
            raise HarnessError(f"{url}: {result['errorText']}")

    def js(self, expression):
        """The value of an expression in the page; that of a promise when it is there."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise HarnessError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, expression, what, seconds=SOON):
        return wait_until(lambda: self.js(expression), seconds, what)

    def look(self, width, height=900, dark=False, still=False):
        """Another screen, and what its owner prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}])

    def press(self, key, modifiers=0):
        text = {"Enter": "\r", " ": " "}.get(key)
        down = {"type": "keyDown" if text else "rawKeyDown", "key": key, "code": "Space" if key == " " else key,
                "windowsVirtualKeyCode": KEYS[key], "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", **down, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", **{**down, "type": "keyUp"})

    def screenshot(self, path):
        """All of the page, however long."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(picture["data"]))
