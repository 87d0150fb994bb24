# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The alert rules and the dashboard for the figures of hydns-metrics, by promtool and by a real Prometheus."""

import json
import re
import subprocess

from metrics_paths import metrics_path

from lab.metrics import Prometheus, installed, rows
from lab.run import wait_until
from lab.tools import TOP

ALERTS, ALERT_TESTS = TOP / "packaging" / "hydns-alerts.yml", TOP / "test-harness" / "lab" / "hydns-alerts-test.yml"
DASHBOARD = TOP / "packaging" / "hydns-dashboard.json"
PARTS = {"COUNTER": ("",), "GAUGE": ("",), "HISTOGRAM": ("_bucket", "_sum", "_count")}


def expressions():
    """All expressions of the dashboard."""
    def walk(thing):
        if isinstance(thing, dict):
            yield from [thing["expr"]] if "expr" in thing else []
            yield from (e for inner in thing.values() for e in walk(inner))
        elif isinstance(thing, list):
            yield from (e for inner in thing for e in walk(inner))
    return [e.replace("$__rate_interval", "1m").replace("$instance", ".*") for e in walk(json.loads(DASHBOARD.read_text()))]


def known_names():
    return {name + part for _, name, kind, *_ in rows() for part in PARTS[kind]} | {"hydns_up", "hydns_build_info", "hydns_metrics_answer_seconds"}


def test_promtool_takes_the_rules():
    """Their syntax, and what they fire on, by promtool's own tests."""
    for verb, file in (("check", ALERTS), ("test", ALERT_TESTS)):
        done = subprocess.run([installed("promtool"), verb, "rules", file], capture_output=True, text=True, cwd=file.parent)
        assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_use_metrics_that_exist():
    text = ALERTS.read_text() + "\n".join(expressions())
    used = set(re.findall(r"(?<!:)\bhydns_\w+", text))
    assert len(used) > 20 and used <= known_names(), used - known_names()


def test_every_alert_is_tested():
    alerts = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
    assert len(alerts) > 8 and alerts <= set(re.findall(r"alertname: (\w+)", ALERT_TESTS.read_text()))


def test_dashboard_has_what_grafana_needs():
    """Its model: panels with places that do not overlap, each with a title, a type and a source of data. (Grafana is in no package
    registry of Debian's.)"""
    board = json.loads(DASHBOARD.read_text())
    assert board["title"] and board["uid"] and board["schemaVersion"] >= 36 and board["time"]["from"]
    assert [v["name"] for v in board["templating"]["list"]] == ["datasource", "instance"]
    places, ids = set(), [p["id"] for p in board["panels"]]
    assert len(ids) == len(set(ids)) > 8
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert panel["title"] and panel["type"] and place["x"] + place["w"] <= 24 and not cells & places, panel["title"]
        places |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}" and all(t["expr"] and t["refId"] for t in panel["targets"])


def test_prometheus_loads_all_of_it(world):
    """The real one: scrapes, evaluates every rule without an error, takes every expression of the dashboard, and fires an alert."""
    with metrics_path(world) as path, Prometheus(world, path.metrics, ALERTS) as prometheus:
        prometheus.wait_value("hydns_up", 1)
        prometheus.wait_value('up{job="hydns"}', 1)

        def healthy():
            rules = [r for group in prometheus.get("rules")["groups"] for r in group["rules"]]
            return len(rules) > 8 and all(r["health"] == "ok" for r in rules)
        wait_until(healthy, 60, "Prometheus to evaluate all rules")
        assert expressions()
        for expression in expressions():
            prometheus.get("query", query=expression)
        path.daemon.ctl("pause")
        try:
            wait_until(lambda: [a for a in prometheus.get("alerts")["alerts"] if a["labels"]["alertname"] == "HydnsPaused"], 60,
                       "the alert of a pause to be pending")
        finally:
            path.daemon.ctl("resume")
