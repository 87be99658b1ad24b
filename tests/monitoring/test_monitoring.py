"""Tests the alerts and the dashboard: they parse, query existing metrics, and alert in time."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from hooks.app import create_app
from hooks.service.settings import Settings
from tapp.words.conditions import Type
from tapp.words.reasons import Reason
from tests.builders import request, tapp
from tests.contract.pages import WATCH, quoted, rows, section
from tests.monitoring.monitoring_files import ALERTS, DASHBOARD, RULES, STATES, panels, queries

Labels = dict[str, set[str]]

HERE = Path(__file__).parent
PICTURE = HERE.parents[1] / "docs" / "img" / "dashboard.svg"

TARGET = {"namespace", "pod", "container", "job", "instance", "endpoint", "service"}
"""Labels that the Prometheus operator adds to every scraped metric."""


# --- queries --------------------------------------------------------------------------------------


EVERY_QUERY = pytest.mark.parametrize("query", queries().values(), ids=queries())
FUNCTIONS = {
    *("absent", "changes", "count", "histogram_quantile", "increase", "max", "rate", "scalar"),
    *("sum", "and", "or", "unless", "by", "on"),
}


def names(query: str) -> Iterator[tuple[str, set[str]]]:
    """Yields each metric of a query, with the labels that select its series."""
    grouped = re.sub(r"\b(by|on|without) \([^)]*\)", "", query)
    for name, selector in re.findall(r"\b([a-z]\w*)(\{[^}]*\})?", without_strings(grouped)):
        if name not in FUNCTIONS:
            yield name, set(re.findall(r"(\w+)[=!]", selector))


def without_strings(query: str) -> str:
    """Returns the query without its strings and durations."""
    return re.sub(r'"[^"]*"|\[\w+\]', "", query)


def groupings(query: str) -> set[str]:
    """Returns the labels by which a query aggregates or matches series."""
    lists = re.findall(r"\b(?:by|on|without) \(([^)]*)\)", query)
    return {label for each in lists for label in re.findall(r"\w+", each)}


# --- existing metrics -----------------------------------------------------------------------------


def exposed(text: str) -> Labels:
    """Returns metric -> its labels, from a text in Prometheus' exposition format."""
    found: Labels = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def served() -> Labels:
    """Returns metric -> its labels, for the metrics that the service exposes after a sync and a
    refused request.
    """
    client = create_app(Settings(log_level="ERROR")).test_client()
    assert client.post("/sync", json=request(tapp())).status_code == 200
    client.post("/sync", json=request(tapp()))
    assert client.post("/sync", json={}).status_code == 400
    return exposed(client.get("/metrics").text)


def configured() -> Labels:
    """Returns metric -> its labels, for the metrics of TApps that the shipped configuration
    defines.

    kube-state-metrics exposes these metrics.
    """
    (resource,) = STATES["spec"]["resources"]
    common = {f"customresource_{part}" for part in resource["groupVersionKind"]}
    common |= set(resource["labelsFromPath"])
    found = {}
    for metric in resource["metrics"]:
        gauge = metric["each"]["gauge"]
        own = {*gauge.get("labelsFromPath", ()), gauge.get("labelFromKey", "namespace")}
        found[f"{resource['metricNamePrefix']}_{metric['name']}"] = common | own
    return found


def recorded(name: str) -> Labels:
    """Returns metric -> its labels, from a file that was recorded from the real program."""
    return exposed((HERE / "recorded" / name).read_text())


@pytest.fixture(scope="module")
def known() -> Labels:
    """Returns metric -> its labels, for all metrics that the rules and the dashboard may query."""
    metacontroller = recorded("metacontroller-4.17.2.txt")
    return {"up": set(), **served(), **configured(), **metacontroller}


def test_kube_state_metrics_exposes_the_configured_metrics() -> None:
    """Compares the configured metrics with those that a real kube-state-metrics has exposed.

    The file was recorded on a real API server with two TApps.
    """
    assert recorded("kube-state-metrics.txt") == configured()


# --- queries and metrics agree --------------------------------------------------------------------


@EVERY_QUERY
def test_queried_metrics_and_labels_exist(query: str, known: Labels) -> None:
    asked = list(names(query))
    assert asked
    for name, labels in asked:
        assert name in known, name
        assert labels <= known[name] | TARGET, name
    assert groupings(query) <= TARGET.union(*(known[name] for name, _ in asked))


@EVERY_QUERY
def test_queried_conditions_and_reasons_exist(query: str) -> None:
    assert set(re.findall(r'condition="(\w+)"', query)) <= set(Type)
    assert set(re.findall(r'reason="(\w+)"', query)) <= set(Reason)


def test_every_metric_of_tapps_is_queried() -> None:
    shown = {name for query in queries().values() for name, _ in names(query)}
    ready = {"kube_tapp_status_template_replicas_ready"}  # for dashboards of your own
    assert configured().keys() - shown == ready


def test_panels_have_different_ids_and_do_not_overlap() -> None:
    """Compares IDs and places of all panels, which use the data source that the viewer chooses."""
    everything = DASHBOARD["panels"]
    assert len({panel["id"] for panel in everything}) == len(everything)
    taken: set[tuple[int, int]] = set()
    for panel in everything:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in panels())


def test_screenshot_in_the_documentation_has_the_titles_of_all_panels() -> None:
    """Looks for the title of each panel in the screenshot; if the panels change, the screenshot is
    outdated.
    """
    drawn = ET.parse(PICTURE).iter("{http://www.w3.org/2000/svg}text")
    titles = [element.text for element in drawn if element.get("class") == "t"]
    assert {panel["title"] for panel in panels()} <= set(titles)


# --- alerts and their documentation ---------------------------------------------------------------


def test_every_alert_is_documented() -> None:
    documented = {cells[0].strip("`"): cells[1:] for cells in rows(section(WATCH, "Alerts"))}
    assert {name: cells[0] for name, cells in documented.items()} == {
        name: rule["labels"]["severity"] for name, rule in ALERTS.items()
    }


def test_every_metric_of_tapps_is_documented() -> None:
    prefix = "kube_tapp_"
    documented = {name for name in quoted(section(WATCH, "Monitoring")) if prefix in name}
    assert {name.partition("{")[0] for name in documented} == set(configured())


def test_every_alert_has_a_summary_a_description_and_a_severity() -> None:
    for rule in ALERTS.values():
        assert set(rule["annotations"]) == {"summary", "description"}
        assert all(text.endswith(".") for text in rule["annotations"].values())
        assert rule["labels"]["severity"] in {"warning", "critical"}


def test_every_alert_fires_in_a_promtool_test() -> None:
    cases = yaml.safe_load((HERE / "alerts.yaml").read_text())["tests"]
    tried = [each for case in cases for each in case["alert_rule_test"]]
    assert {each["alertname"] for each in tried if each["exp_alerts"]} == set(ALERTS)


def promtool(*arguments: str) -> str:
    """Runs promtool and returns its output; skips the test if this machine does not have it."""
    command = shutil.which("promtool")
    if command is None:
        pytest.skip("no promtool on PATH (Debian: prometheus)")
    done = subprocess.run(
        [command, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_promtool_tests_of_the_alerts_pass(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(RULES))
    shutil.copy(HERE / "alerts.yaml", tmp_path)
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "alerts.yaml"))


def test_rules_and_queries_are_promql(tmp_path: Path) -> None:
    asked = [{"record": f"query_{n}", "expr": expr} for n, expr in enumerate(queries().values())]
    groups = [*RULES["groups"], {"name": "dashboard", "rules": asked}]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups}))
    promtool("check", "rules", str(tmp_path / "rules.yaml"))
