# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound in a chroot, as a user of its own. hydnsd's second plugin socket is inside, for a group of which that user is a
member only by the host's /etc/group: the chroot has no /etc."""

import grp
import shutil
import signal
from contextlib import contextmanager
from pathlib import Path

from lab.network import SERVICE
from lab.process import Program
from lab.run import wait_until
from lab.servers import Unbound

NAME = "www.lab.example"
USER, UID = "hydns-caged", 64321
GROUP = "daemon"          # any that the host has
# does not change the host's accounts: only Unbound sees one more user
START = 'mount --bind "$0" /etc/passwd && mount --bind "$1" /etc/group && shift && exec "$@"'


class Caged(Unbound):
    def __init__(self, world, member):
        cage = world.run.dir / "cage"
        cage.mkdir(exist_ok=True)
        shutil.copy(world.hints, cage / "hints")
        super().__init__(world, world.network.resolver, "cage", SERVICE, cage / "hints", hydns="/plugin.sock",
                         server=[f'chroot: "{cage}"', f'username: "{USER}"'])
        self.passwd, self.group = world.run.dir / "passwd", world.run.dir / "group"
        self.passwd.write_text(Path("/etc/passwd").read_text() + f"{USER}:x:{UID}:{UID}::/:/usr/sbin/nologin\n")
        lines = [line + ("," if line[-1] != ":" else "") + USER if member and line.startswith(f"{GROUP}:") else line
                 for line in Path("/etc/group").read_text().splitlines()]
        self.group.write_text("\n".join([*lines, f"{USER}:x:{UID}:"]) + "\n")

    def start(self):
        self.program = Program(self.world.run, self.ns, self.name,
                               ["unshare", "--mount", "sh", "-c", START, self.passwd, self.group, *self.command, "-d", "-c",
                                self.config])
        self.program.wait_ready(lambda: all(self._answers(a) for a in self.service.values()), 20)


@contextmanager
def caged(world, member):
    unbound = Caged(world, member)
    with world.hydnsd(options=["--plugin-socket", unbound.dir / "plugin.sock", "--plugin-group", GROUP]) as daemon, unbound:
        yield daemon, unbound


def of_process(unbound, field):
    status = Path(f"/proc/{unbound.program.pid}/status").read_text()
    return next(line.split()[1:] for line in status.splitlines() if line.startswith(f"{field}:"))


def test_the_users_groups_stay(world):
    with caged(world, member=True) as (daemon, unbound):
        wait_until(daemon.resolver_ready, 10, "the caged Unbound to register")
        assert set(of_process(unbound, "Uid")) == set(of_process(unbound, "Gid")) == {str(UID)}
        assert set(of_process(unbound, "Groups")) == {str(UID), str(grp.getgrnam(GROUP).gr_gid)}
        world.heat(daemon, NAME)
        daemon.stop(signal.SIGKILL)
        daemon.start()
        wait_until(daemon.resolver_ready, 10, "it to register with another hydnsd")
        unbound.control("reload")
        unbound.control("status")
        wait_until(daemon.resolver_ready, 10, "it to register after a reload")
        world.heat(daemon, NAME)
        assert "may not be used" not in unbound.program.log.read_text()


def test_error_for_a_user_outside_the_group(world):
    """Unbound logs the cause and the mend, and not the advice to start hydnsd."""
    with caged(world, member=False) as (daemon, unbound):
        gid = grp.getgrnam(GROUP).gr_gid
        said = f"/plugin.sock may not be used by this process (user {UID}): every query goes through the resolver until it may; " \
               f"add the resolver's user to group {gid}, which is hydnsd's plugin-group"
        wait_until(lambda: said in unbound.program.log.read_text(), 10, "Unbound to say why")
        assert not daemon.resolver_ready()
        assert set(of_process(unbound, "Groups")) == {str(UID)}
