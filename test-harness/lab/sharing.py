# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How `pytest -n` distributes the tests over its processes. By module, since a module's tests may build upon each other; the
modules of BY_TEST by test, since each of theirs starts a whole run of its own. Long ones come first, so that none is left at
the end."""

from collections import OrderedDict
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

BY_TEST = ("test_demo.py", "test_chaos.py", "test_differential.py", "test_policy_live.py", "test_bench.py")
LONG = (*BY_TEST, "test_rings_failures.py", "test_restart.py", "test_mistakes.py", "test_refresh.py", "test_counts.py", "test_bind_zones.py")


def module_of(scope):
    return Path(scope.partition("::")[0]).name


class ByModule(LoadScopeScheduling):
    def _split_scope(self, nodeid):
        return nodeid if module_of(nodeid) in BY_TEST else nodeid.partition("::")[0]

    def schedule(self):
        if self.collection is None:      # nothing is distributed yet
            scopes = dict.fromkeys(map(self._split_scope, next(iter(self.registered_collections.values()))))
            first = [scope for name in LONG for scope in scopes if module_of(scope) == name]
            self.workqueue = OrderedDict((scope, OrderedDict()) for scope in first)
        super().schedule()
