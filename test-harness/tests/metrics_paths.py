# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The kernel path with hydns-metrics."""

from contextlib import contextmanager

from conftest import kernel_path

from lab.metrics import Metrics


@contextmanager
def metrics_path(world, listen=None, page=None, **options):
    """As kernel_path(), with metrics: hydns-metrics, in the resolver's namespace; page: where it has a page, if it has one."""
    with kernel_path(world, **options) as path:
        more = {"listen": listen} if listen else {}
        with Metrics(world, world.network.resolver, path.daemon.control_socket, page=page, **more) as path.metrics:
            yield path
