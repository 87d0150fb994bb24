# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The cache of built resolvers: one build runs at a time, also after a killed build that left processes; the pinned source comes
from wherever it still is."""

import fcntl
import functools
import http.server
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lab.run import SOON, wait_until

BUILD = Path(__file__).resolve().parent.parent.parent / "resolver-build"
sys.path.insert(0, str(BUILD))
import resolver_build  # noqa: E402
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from resolver_build import locked, run
folder = Path(sys.argv[2])
with locked(folder / "lock"):
    run(["sh", "-c", f"echo $$ >{folder}/pid.new; mv {folder}/pid.new {folder}/pid; exec sleep 1000"], folder / "log", "")
"""


def is_free(lock):
    with open(lock) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_lock_outlives_a_killed_build(tmp_path):
    with subprocess.Popen([sys.executable, "-B", "-c", SCRIPT, BUILD, tmp_path]) as build:
        wait_until((tmp_path / "pid").exists, SOON, "the build to start something")
        build.kill()
    left = int((tmp_path / "pid").read_text())
    free = is_free(tmp_path / "lock")
    os.kill(left, signal.SIGKILL)
    assert not free
    wait_until(lambda: is_free(tmp_path / "lock"), SOON, "the lock to be free")


# --- the pinned source ---------------------------------------------------------------------------------------------
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(name="archive")
def archive_of_a_package(tmp_path, monkeypatch):
    """(address, folder of the package in its pool) of an archive with a source package and no index."""
    pool = tmp_path / "archive/pool/main/d/daemon"
    pool.mkdir(parents=True)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path / "archive"))
    apt = tmp_path / "apt.conf"
    apt.write_text('Acquire::http::Proxy::127.0.0.1 "DIRECT";\n')
    monkeypatch.setenv("APT_CONFIG", str(apt))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", pool
    server.shutdown()
    thread.join()
    server.server_close()


def pinned(archive, folder, snapshot=None):
    """What BASE says of a release, whose files are put into the archive."""
    address, pool = archive
    (pool / "daemon_1.orig.tar.xz").write_bytes(b"source")
    dsc = ["Format: 3.0 (quilt)", "Checksums-Sha256:",
           f" {resolver_build.sha256(pool / 'daemon_1.orig.tar.xz')} 6 daemon_1.orig.tar.xz", "Files:", ""]
    (pool / "daemon_1-1.dsc").write_text("\n".join(dsc))
    (folder / "1").mkdir()
    rows = {"version": "1", "package": "daemon", "suite": "trixie", "revision": "1-1",
            "orig": f"daemon_1.orig.tar.xz {resolver_build.sha256(pool / 'daemon_1.orig.tar.xz')}",
            "packaging": "daemon_1-1.debian.tar.xz 0", "dsc": f"daemon_1-1.dsc {resolver_build.sha256(pool / 'daemon_1-1.dsc')}",
            "snapshot": snapshot or address}
    (folder / "1/BASE").write_text("".join(f"{key} {value}\n" for key, value in rows.items()))
    (folder / "1/series").write_text("")
    return resolver_build.Base("Daemon", folder / "1")


@pytest.mark.parametrize("place", ["pool", "snapshot"])
def test_source_that_no_index_names(archive, tmp_path, monkeypatch, place):
    """Archives go on to later releases; their indexes name only these."""
    nowhere = "http://127.0.0.1:1"
    base = pinned(archive, tmp_path, snapshot=nowhere if place == "pool" else None)
    monkeypatch.setattr(resolver_build, "pools", lambda: [nowhere] if place == "snapshot" else [archive[0]])
    dsc = resolver_build.fetch(base, tmp_path)
    assert (dsc.parent / base.orig).read_bytes() == b"source"


def test_another_file_in_the_place_of_the_source(archive, tmp_path, monkeypatch):
    base = pinned(archive, tmp_path)
    (archive[1] / base.orig).write_bytes(b"forged")
    monkeypatch.setattr(resolver_build, "pools", lambda: [])
    assert not resolver_build.download_pinned(base, tmp_path / "part", tmp_path / "log")
