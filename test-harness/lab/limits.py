# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A time limit for each test, for a conftest.py to import."""

import signal

import pytest

DEFAULT_LIMIT = 120      # seconds: shall catch what hangs, not what is slow
FAILS_A_TEST = pytest.CallInfo.from_call.__func__.__code__     # pytest makes what is raised below it the test's failure
AGAIN = 1                # seconds


class MainThread:
    """Has every process of pytest-xdist run its tests in its main thread, the only one that can handle signals.

    With -v, xdist asks a new process for its version. The main thread may be busy with that when the tests come, and they would
    begin in another thread."""

    def __init__(self, option):
        self.option = option

    @pytest.hookimpl(hookwrapper=True, optionalhook=True)
    def pytest_xdist_newgateway(self):
        verbose, self.option.verbose = self.option.verbose, 0
        yield
        self.option.verbose = verbose


def pytest_configure(config):
    config.pluginmanager.register(MainThread(config.option))
    # as Ctrl-C, after which fixtures clean up; a SystemExit would fail only one test
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.addinivalue_line("markers", f"limit(seconds): time limit of the test [{DEFAULT_LIMIT}]")


def _runs(code, frame):
    while frame and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


@pytest.fixture(autouse=True)
def time_limit(request):
    marker = request.node.get_closest_marker("limit")
    seconds = marker.args[0] if marker else DEFAULT_LIMIT

    def over(number, frame):
        if not _runs(FAILS_A_TEST, frame):       # pytest reports or writes: raised now, it would end all tests
            signal.alarm(AGAIN)
            return
        pytest.fail(f"not done within {seconds} s")
    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
