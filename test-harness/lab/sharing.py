# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How `pytest -n` distributes the tests over its processes. By module, since a module's tests may build upon each other. Long ones come
first, so that none is left at the end. Those that keep the processors busy run in two processes, so that no more than two are at work
beside each other: more starve each other's servers and clients."""

from collections import OrderedDict
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

BUSY = {"test_chaos.py": "storms", "test_demo.py": "storms", "test_bench.py": "runs", "test_differential.py": "runs",
        "test_policy_live.py": "runs"}
LONG = ("test_bind_names.py", "test_bind_rates.py", "test_bind_zone_versions.py", "test_bind_exchanged.py", "test_composition.py",
        "test_bind_nsec3.py", "test_restart.py", "test_rings_failures.py")


def share_of(nodeid):
    """What runs in one process, in order: a module, or several that are busy."""
    module = Path(nodeid.partition("::")[0]).name
    return BUSY.get(module, module)


class ByModule(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        return share_of(nodeid)

    def schedule(self):
        if self.collection is None:      # nothing is distributed yet
            shares = set(map(share_of, next(iter(self.registered_collections.values()))))
            self.workqueue = OrderedDict((share, OrderedDict()) for share in (*dict.fromkeys(BUSY.values()), *LONG) if share in shares)
        super().schedule()
