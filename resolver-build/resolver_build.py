# SPDX-License-Identifier: BSD-3-Clause
"""Shared by the build scripts of the patched resolvers: fetching a pinned release from the machine's own package archive,
patching it, keys of cached builds, and building the plugin library."""
import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PROGRAM = Path(sys.argv[0]).name
LIBRARY = ("plugin", "offload-policy")          # folders whose *.c make the plugin library
CFLAGS = "-O2 -g"
STARTED = time.monotonic()
held = []       # descriptors of the locks that this program has


class Failure(Exception):
    """An error with its cause and its mend."""


def say(text):
    print(f"{PROGRAM}: [{time.monotonic() - STARTED:5.1f} s] {text}", file=sys.stderr, flush=True)


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        for block in iter(lambda: f.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def run(argv, log, mend, **more):
    """Runs argv with its output in log; the error of a failure has the log's end. argv inherits the locks: if this program
    is killed, the next one waits until argv has ended."""
    with open(log, "ab") as out:
        out.write(("\n$ " + " ".join(map(str, argv)) + "\n").encode())
        out.flush()
        done = subprocess.run(argv, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, pass_fds=held,
                              **more)
    if done.returncode:
        tail = Path(log).read_text(errors="replace").splitlines()[-30:]
        raise Failure("\n".join(tail) + f"\n{argv[0]} failed ({log}): {mend}")


# --- what is pinned -----------------------------------------------------------------------------------
class Base:
    """A folder named after a line of releases, with BASE, series and patches. product: its name in messages. version: the release
    that the series was made for, until take() says another; releases: all that it was tested with; pinned: the release that a package
    archive has. Without one the source is the operator's, and pinned and package are None."""

    def __init__(self, product, folder):
        self.product = product
        self.folder = folder
        if not (self.folder / "BASE").is_file():
            raise Failure(f"no patches for {product} {folder.name}: there are those for {known_releases(folder.parent)}")
        rows = [line.split() for line in (self.folder / "BASE").read_text().splitlines()
                if line.strip() and not line.startswith("#")]
        values = {row[0]: row[1:] for row in rows}
        self.version = values["version"][0]
        self.releases = [self.version, *values.get("also", ())]
        self.package = values["package"][0] if "package" in values else None
        self.pinned = self.version if self.package else None
        self.orig = self.orig_sha256 = self.follow = None
        if self.package:
            self.suite = values["suite"][0]
            self.revision = values["revision"][0]
            self.orig, self.orig_sha256 = values["orig"]
            self.packaging, self.packaging_sha256 = values["packaging"]
            self.dsc, self.dsc_sha256 = values["dsc"]
            self.snapshot = values["snapshot"][0]
            self.follow = values["follow"][0] if "follow" in values else None
        self.series = [self.folder / name for name in (self.folder / "series").read_text().split()]

    def take(self, version):
        """The source is this release of the line."""
        if version not in self.releases:
            say(f"{self.product} {version} was not tested with this series, which was made for {' and '.join(self.releases)}: it must "
                "apply without fuzz")
        self.version = version


def known_releases(folder):
    """The releases that the series below this folder were tested with, for messages."""
    return ", ".join(release for base in sorted(folder.glob("*/BASE")) for line in base.read_text().splitlines()
                     if line.startswith(("version ", "also ")) for release in line.split()[1:])


def base_of(product, folder, line, source):
    """The series for this source (None: the pinned one). line: None: that of the source."""
    if source is None or source.suffix == ".dsc":
        return Base(product, folder / line)
    name, version = identity_of(source)
    if name.lower() != product.lower():
        raise Failure(f"{source} is the source of {name or 'something else'}, not of {product}")
    own = ".".join(version.split(".")[:2])
    if not (folder / own / "BASE").is_file():
        raise Failure(f"{source} is {product} {version}, for which there is no series: there are those for {known_releases(folder)}")
    base = Base(product, folder / own)
    base.take(version)
    return base


# --- the machine's own package archive, without touching its configuration ----------------------------
def stanzas(path):
    """APT source entries of a file, as dictionaries of deb822 fields."""
    text = path.read_text(errors="replace")
    if path.suffix == ".sources":
        for block in re.split(r"\n\s*\n", text):
            fields = {}
            key = None
            for line in block.splitlines():
                if line.startswith("#"):
                    continue
                if line[:1] in " \t" and key:
                    fields[key] += "\n" + line
                elif ":" in line:
                    key, value = line.split(":", 1)
                    key = key.lower()
                    fields[key] = value.strip()
            if fields:
                yield fields
        return
    for line in text.splitlines():
        m = re.match(r"\s*deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.+)", line)
        if m:
            options = dict(o.split("=", 1) for o in (m.group(1) or "").split() if "=" in o)
            yield {"types": "deb", "uris": m.group(2), "suites": m.group(3), "components": m.group(4),
                   "signed-by": options.get("signed-by", "")}


def machine_entries():
    """APT source entries of this machine for binary packages of main."""
    folder = Path("/etc/apt/sources.list.d")
    files = [Path("/etc/apt/sources.list")] if Path("/etc/apt/sources.list").is_file() else []
    files += sorted(p for p in folder.glob("*") if p.suffix in (".list", ".sources")) if folder.is_dir() else []
    for path in files:
        for fields in stanzas(path):
            if "deb" in fields.get("types", "").split() and "main" in fields.get("components", "").split() \
                    and fields.get("enabled", "yes") != "no":
                yield fields


RELEASES = r"(bookworm|trixie|stable|oldstable)(-security)?"        # the suites that an archive is known by


def pools():
    """Base addresses of the archives of this machine's own Debian release."""
    found = {}
    for fields in machine_entries():
        if any(re.fullmatch(RELEASES, suite) for suite in fields.get("suites", "").split()):
            found.update(dict.fromkeys(uri.rstrip("/") for uri in fields["uris"].split()))
    return list(found)


def archive_entries(suite, types):
    """APT source entries of these types ("deb" or "deb-src") for a suite and its security updates, from the archive of this
    machine's own Debian release."""
    found = {}
    for fields in machine_entries():
        for own in fields.get("suites", "").split():
            m = re.fullmatch(RELEASES, own)
            if m:
                found.setdefault(suite + (m.group(2) or ""), fields)
    if suite not in found:
        raise Failure("this machine's APT sources name no Debian release to take the source from: add one "
                      "to /etc/apt/sources.list.d, or name a source with --source")
    text = []
    for name, fields in found.items():
        entry = [("Types", types), ("URIs", fields["uris"]), ("Suites", name), ("Components", "main")]
        if fields.get("signed-by"):
            entry.append(("Signed-By", fields["signed-by"]))
        text.append("".join(f"{key}: {value}\n" for key, value in entry))
    return "\n".join(text)


class Archive:
    """A private APT with its own sources, lists and cache, and the machine's keyring and proxies."""

    def __init__(self, folder, suite, log, types="deb-src"):
        self.log, self.folder = log, folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("sources", "lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True)
        (folder / "sources" / "hydns.sources").write_text(archive_entries(suite, types))
        self.options = []
        for key, value in (("Dir::Etc::sourcelist", "/dev/null"), ("Dir::Etc::sourceparts", folder / "sources"),
                           ("Dir::State::lists", folder / "lists"), ("Dir::Cache", folder / "cache"),
                           ("APT::Sandbox::User", ""), ("Acquire::Retries", "3"),
                           ("Acquire::Check-Valid-Until", "false")):
            self.options += ["-o", f"{key}={value}"]

    def update(self):
        run(["apt-get", *self.options, "update"], self.log, "is the package archive reachable?")
        # without a network apt-get update succeeds
        if not [p for p in (self.folder / "lists").iterdir() if p.is_file() and p.name != "lock"]:
            said = "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])
            raise Failure(f"{said}\ncan't get any list of the package archive ({self.log}): check the network, or name a "
                          "source with --source")

    def revisions(self, package):
        out = subprocess.run(["apt-cache", *self.options, "showsrc", package], capture_output=True, text=True,
                             check=False).stdout
        return re.findall(r"^Version: (\S+)$", out, re.M)

    def with_dependencies(self, package):
        """Downloads a package and all its dependencies, as for a machine with nothing installed. Returns the files (types:
        deb)."""
        nothing = self.folder / "status"
        nothing.write_text("")
        run(["apt-get", *self.options, "-o", f"Dir::State::status={nothing}", "install", "--download-only", "--yes",
             "--no-install-recommends", package], self.log, "is the package archive reachable?")
        return sorted((self.folder / "cache" / "archives").glob("*.deb"))

    def download(self, package, revision, folder):
        run(["apt-get", *self.options, "source", "--download-only", f"{package}={revision}"], self.log,
            "is the package archive reachable?", cwd=folder)


def compare(a, b):
    """Compares Debian revisions as dpkg does: negative, 0 or positive."""
    if a == b:
        return 0
    return -1 if subprocess.run(["dpkg", "--compare-versions", a, "lt", b], check=False).returncode == 0 else 1


def choose_revisions(base, offered):
    """The revisions to try in turn: the pinned one; else those of the same release; else, if BASE has "follow", those of its
    line. The newest comes first; an archive may list one that it does not have yet."""
    if base.revision in offered:
        return [base.revision]
    line = re.match(r"(.*[a-z])(\d+)$", base.revision).group(1)
    for start, why in ((line, "whose packaging has the archive's signature; the orig tarball is still the pinned one"),
                       (base.follow, "which has the archive's signature only; the patches must apply to it without fuzz")):
        taken = sorted({r for r in offered if start and r.startswith(start)}, key=functools.cmp_to_key(compare),
                       reverse=True)
        if taken:
            say(f"{base.revision} is gone from the archive: taking {' or '.join(taken)}, {why}")
            return taken
    raise Failure(f"the archive has no {line}N of {base.package} any more (it has {', '.join(offered) or 'none'}):"
                  " name a source with --source")


def download_first(archive, base, folder):
    """Downloads the first revision that the archive has."""
    revisions = choose_revisions(base, archive.revisions(base.package))
    for i, revision in enumerate(revisions):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            archive.download(base.package, revision, folder)
            return
        except Failure as e:
            if i == len(revisions) - 1:
                raise
            say(f"can't get {revision}: {str(e).splitlines()[-1]}")


def download_file(address, target, digest, log):
    """By APT's own means, so with the machine's proxies. Raises Failure, also when the file is another one."""
    run(["/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30",
         "-o", "Acquire::https::Timeout=30", "download-file", address, target, f"SHA256:{digest}"], log, "not there", timeout=600)


def download_pinned(base, folder, log):
    """Downloads the files of the pinned revision; false when no place has them all. Their checksums are known, so no index is
    needed: when that names only a later release, the pool may still have them, and snapshot.debian.org has."""
    for place in [*pools(), base.snapshot]:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        pool = f"{place}/pool/main/{base.package[0]}/{base.package}"
        try:
            download_file(f"{pool}/{base.dsc}", folder / base.dsc, base.dsc_sha256, log)
            for name, digest in files_of(folder / base.dsc):
                download_file(f"{pool}/{name}", folder / name, digest, log)
            return True
        except (Failure, subprocess.TimeoutExpired):
            say(f"{place} has no {base.package} {base.revision}")
    return False


def files_of(dsc):
    """(name, SHA-256) of each file that a .dsc lists."""
    listed = re.search(r"^Checksums-Sha256:\n((?: .+\n)+)", dsc.read_text(), re.M).group(1)
    return [(name, digest) for digest, _, name in (line.split() for line in listed.splitlines())]


def fetched(base, folder):
    """The .dsc of a complete earlier download, or None. If that was of a later release of the line, base becomes that
    release."""
    dscs = sorted(folder.glob(f"{base.package}_*.dsc"))
    if not dscs:
        return None
    upstream = dscs[-1].name[len(base.package) + 1:].rpartition("-")[0]
    if base.follow and upstream != base.version:
        origs = sorted(folder.glob(f"{base.package}_{upstream}.orig.tar.*z"))
        if not origs:
            return None
        base.version, base.orig, base.orig_sha256 = upstream, origs[-1].name, None
    return dscs[-1] if (folder / base.orig).is_file() else None


def check_pins(base, dsc):
    folder = dsc.parent
    if base.orig_sha256 and sha256(folder / base.orig) != base.orig_sha256:
        raise Failure(f"{folder / base.orig} is not the pinned tarball: delete {folder} and try again; if the error comes "
                      "again, do not build it")
    pinned = folder / base.packaging
    if pinned.is_file() and sha256(pinned) != base.packaging_sha256:
        raise Failure(f"{pinned} is not the pinned file: delete {folder} and try again; if the error comes again, do not "
                      "build it")


def fetch(base, cache):
    """The Debian source package, downloaded once. Returns its .dsc."""
    if not base.package:
        raise Failure(f"the source of {base.product} {base.version} can't be fetched: name an archive or a tree with --source "
                      f"(configure --with-{base.product.lower()}-source=)")
    folder = cache / f"source-{base.package}-{base.folder.name}"
    dsc = fetched(base, folder)
    if dsc is None:
        log = cache / "fetch.log"
        log.write_bytes(b"")
        say(f"fetching the source package of {base.product} {base.revision}")
        part = folder.with_name(folder.name + ".part")
        if not download_pinned(base, part, log):
            archive = Archive(cache / "apt", base.suite, log)
            archive.update()
            download_first(archive, base, part)
            shutil.rmtree(cache / "apt", ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
        dsc = fetched(base, folder)
        if dsc is None:
            raise Failure(f"the download has no {base.orig} (see {log}): try again")
    check_pins(base, dsc)
    return dsc


# --- sources -------------------------------------------------------------------------------------------
def text_in(source, name):
    """A file at the top of a source tree or tarball; "" if there is none."""
    if source.is_dir():
        return (source / name).read_text(errors="replace") if (source / name).is_file() else ""
    try:
        with tarfile.open(source) as tar:
            for member in tar:
                if member.isfile() and member.name.removeprefix("./").split("/")[1:] == [name]:
                    return tar.extractfile(member).read().decode(errors="replace")
    except (tarfile.TarError, EOFError, OSError) as e:
        raise Failure(f"{source} is no source archive: {e}") from e
    return ""


def identity_of(source):
    """(name, version) of a source tree or tarball, by its configure script, or in a checkout of BIND by configure.ac."""
    text = text_in(source, "configure")
    found = [re.search(rf"^PACKAGE_{what}='(.+)'$", text, re.M) for what in ("NAME", "VERSION")]
    if all(found):
        return tuple(m[1] for m in found)
    text = text_in(source, "configure.ac")
    parts = [re.search(rf"^m4_define\(\[bind_VERSION_{part}\], (\S*)\)", text, re.M) for part in ("MAJOR", "MINOR", "PATCH", "EXTRA")]
    if not all(parts):
        raise Failure(f"{source} is no released source: it has neither a configure script nor a configure.ac that names the version")
    return "BIND", ".".join(m[1] for m in parts[:3]) + parts[3][1]


def make_configure(target, log):
    """A checkout has no configure script."""
    if not (target / "configure").is_file() and (target / "configure.ac").is_file():
        run(["autoreconf", "-f", "-i"], log, "are autoconf, automake and libtool installed?", cwd=target)


def unpack(source, base, target, log):
    """Makes a fresh tree, target, from a .dsc, a tarball or a directory."""
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.suffix == ".dsc":
        run(["dpkg-source", "--no-check", "-x", source, target], log, "is dpkg-dev installed?")
    else:
        with tarfile.open(source) as tar:
            names = [m.name for m in tar.getmembers()]
            root = names[0].split("/")[0]
            if any(n.startswith("/") or ".." in n.split("/") or n.split("/")[0] != root for n in names):
                raise Failure(f"{source} is no source tarball: its files have no folder in common")
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(target.parent / "unpack")
            tar.extractall(target.parent / "unpack")
        (target.parent / "unpack" / root).rename(target)
        (target.parent / "unpack").rmdir()
    make_configure(target, log)
    if identity_of(target)[1] != base.version:
        raise Failure(f"{source} is not {base.product} {base.version}: the patches are made for that release")


def apply(base, target, log):
    for patch in base.series:
        run(["patch", "-p1", "-F0", "--no-backup-if-mismatch", "-i", patch], log,
            f"{patch.name} does not fit {base.product} {base.version}: the series was made for {' and '.join(base.releases)}",
            cwd=target)


# --- keys ------------------------------------------------------------------------------------------------
def content_key(parts):
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            digest.update(part.name.encode() + b"\0" + part.read_bytes())
        else:
            digest.update(str(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]


def library_files(pattern):
    return [p for folder in LIBRARY for p in sorted((TOP / folder).rglob(pattern)) if p.parent.name != "tests"]


def library_sources():
    return library_files("*.c")


def source_identity(source):
    """Identifies a source: by a tarball's content, or by a directory's path, configure and changelogs."""
    if source.is_file():
        return sha256(source)
    marks = [source / n for n in ("configure", "configure.ac", "doc/Changelog", "debian/changelog") if (source / n).is_file()]
    return content_key([str(source), *marks])


# --- the plugin library, and the cache ----------------------------------------------------------------
def build_library(args, work):
    """Builds the plugin library as one static, position-independent library."""
    folder = work / "lib"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    objects = []
    for source in library_sources():
        target = folder / f"{source.parent.name}-{source.stem}.o"
        run([*args.cc.split(), "-std=gnu11", "-D_GNU_SOURCE", *CFLAGS.split(), "-Wall", "-Wextra", "-fPIC",
             "-pthread", f"-I{TOP}/include", f"-I{TOP}", "-c", source, "-o", target], work / "build.log",
            "the last lines say where")
        objects.append(target)
    run(["ar", "rcs", folder / "libhydns-resolver.a", *objects], work / "build.log", "is binutils installed?")


@contextlib.contextmanager
def locked(path):
    with open(path, "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build uses the cache: waiting for it")
            fcntl.flock(f, fcntl.LOCK_EX)
        held.append(f.fileno())
        try:
            yield
        finally:
            held.remove(f.fileno())


def default_cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.environ.get("HYDNS_CACHE") or os.path.join(home, "hydns")
