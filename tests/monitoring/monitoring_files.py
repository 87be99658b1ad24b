"""Reads the files of the component monitoring, and the queries in them."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

Document = dict[str, Any]

COMPONENT = Path(__file__).resolve().parents[2] / "metacontroller" / "components" / "monitoring"
RULES = yaml.load((COMPONENT / "rules.yaml").read_text(), yaml.CSafeLoader)["spec"]
DASHBOARD = json.loads((COMPONENT / "dashboard.json").read_text())
STATES = yaml.load((COMPONENT / "kube-state-metrics.yaml").read_text(), yaml.CSafeLoader)
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
VARIABLES = {"$__rate_interval": "5m", "$namespace": ".*", "$tapp": ".*"}


def panels() -> Iterator[Document]:
    """Returns every panel of the dashboard that shows data."""
    return (panel for panel in DASHBOARD["panels"] if panel["type"] != "row")


def on_dashboard(variables: Mapping[str, str] = VARIABLES) -> dict[str, str]:
    """Returns place -> query, for the panels and the variables of the dashboard.

    `variables` are the values of the dashboard's variables.
    """
    found = {}
    for panel in panels():
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert asked
            found[f"variable {variable['name']}"] = f"sum by ({asked[2]}) ({asked[1]})"
    return {place: filled_in(query, variables) for place, query in found.items()}


def queries() -> dict[str, str]:
    """Returns name -> query, for the alerts and the dashboard."""
    return {name: rule["expr"] for name, rule in ALERTS.items()} | on_dashboard()


def filled_in(query: str, variables: Mapping[str, str] = VARIABLES) -> str:
    """Returns the query with values in place of the dashboard's variables."""
    for name, value in variables.items():
        query = query.replace(name, value)
    assert "$" not in query
    return query
