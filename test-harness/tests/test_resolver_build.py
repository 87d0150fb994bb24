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
import tarfile
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


# --- a source that the operator names --------------------------------------------------------------------------------
@pytest.fixture(name="lines")
def lines_of_releases(tmp_path):
    """A folder with the series of two lines; of the second no source can be fetched."""
    for line, base in (("1.2", "version 1.2.3\nalso 1.2.4\npackage daemon\nsuite x\nrevision 1\norig a b\npackaging a b\ndsc a b\nsnapshot x\n"),
                       ("1.6", "version 1.6.1\n")):
        (tmp_path / "lines" / line).mkdir(parents=True)
        (tmp_path / "lines" / line / "BASE").write_text(base)
        (tmp_path / "lines" / line / "series").write_text("")
    return tmp_path / "lines"


def source(folder, version, name="daemon"):
    tree = folder / f"daemon-{version}"
    tree.mkdir()
    (tree / "configure").write_text(f"PACKAGE_NAME='{name}'\nPACKAGE_VERSION='{version}'\n")
    return tree


def packed(tree):
    archive = tree.parent / f"{tree.name}.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tree, tree.name)
    return archive


@pytest.mark.parametrize("form", [lambda tree: tree, packed], ids=["tree", "archive"])
@pytest.mark.parametrize("version,line", [("1.2.3", "1.2"), ("1.2.4", "1.2"), ("1.2.9", "1.2"), ("1.6.1", "1.6")])
def test_series_by_the_version_of_the_source(lines, tmp_path, capsys, form, version, line):
    base = resolver_build.base_of("Daemon", lines, "1.2", form(source(tmp_path, version)))
    assert (base.folder.name, base.version) == (line, version)
    assert ("was not tested" in capsys.readouterr().err) == (version == "1.2.9")


def test_sources_without_a_series(lines, tmp_path):
    for folder, version, name, why in (("a", "1.4.0", "daemon", r"1\.4\.0, for which there is no series: there are those for 1\.2\.3, 1\.2\.4, 1\.6\.1"),
                                       ("b", "1.2.3", "other", "the source of other, not of Daemon")):
        (tmp_path / folder).mkdir()
        with pytest.raises(resolver_build.Failure, match=why):
            resolver_build.base_of("Daemon", lines, "1.2", source(tmp_path / folder, version, name))
    (tmp_path / "text").write_text("no archive")
    for path in (lines, tmp_path / "text"):
        with pytest.raises(resolver_build.Failure, match="is no (released )?source"):
            resolver_build.base_of("Daemon", lines, "1.2", path)


def test_line_whose_source_cannot_be_fetched(lines, tmp_path):
    with pytest.raises(resolver_build.Failure, match="name an archive or a tree with --source"):
        resolver_build.fetch(resolver_build.base_of("Daemon", lines, "1.6", None), tmp_path)


def test_checkout_of_bind_is_recognised(tmp_path):
    parts = zip(("MAJOR", "MINOR", "PATCH", "EXTRA"), ("9", "20", "28", "-dev"))
    (tmp_path / "configure.ac").write_text("".join(f"m4_define([bind_VERSION_{part}], {value})dnl\n" for part, value in parts))
    assert resolver_build.identity_of(tmp_path) == ("BIND", "9.20.28-dev")


@pytest.mark.parametrize("folder", ["unbound-module/patches/1.22", "unbound-module/patches/1.26", "bind-patches/9.20"])
def test_series_are_whole(folder):
    """Each patch of a folder is in its series."""
    base = resolver_build.Base("", resolver_build.TOP / folder)
    assert sorted(base.series) == sorted(base.folder.glob("*.patch"))
