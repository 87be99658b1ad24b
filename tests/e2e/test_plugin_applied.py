"""Compares the result that `kubectl tapp plan -f` predicts for an apply with the real result."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.edit import applied

from .app import App, tapp, template
from .cluster import Cluster
from .plugin import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
POOL = {"a": template("app:2"), "b": template("app:3")}
FULL = tapp(replicas=4, templatePool=POOL, templates={"1": "a", "2": "b"}, statuses={"3": "Killed"})
"""A TApp with a separate template for each of two instances, and one killed instance."""


def without(*paths: str) -> Json:
    """Returns the TApp `FULL` without some fields of its spec."""
    document = copy.deepcopy(FULL)
    for path in paths:
        *above, last = path.split("/")
        place = document["spec"]
        for key in above:
            place = place[key]
        del place[last]
    return document


SERVER = ["--server-side"]
DROPPED = {
    "nothing": without(),
    "an entry of templates": without("templates/1"),
    "all of templates": without("templates"),
    "a template and who uses it": without("templatePool/b", "templates/2"),
    "all of statuses": without("statuses"),
    "the last entry of statuses": without("statuses/3"),
    "the pool": without("templatePool", "templates"),
}
WAYS: dict[str, tuple[list[str], list[str], bool | None]] = {
    "by the client": ([], [], None),
    "by the server": (SERVER, SERVER, None),
    "by the client, then by the server": ([], SERVER, True),
    "by the server, then by the client": (SERVER, [], False),
}
"""Options of the first apply, options of the second apply, and the option of the plan."""


@pytest.mark.parametrize("way", WAYS)
def test_plan_of_a_file_equals_the_result_of_the_apply(
    app: App, cluster: Cluster, plugin: Plugin, way: str
) -> None:
    """Client-side and server-side apply treat dropped fields differently, and the plan must follow
    both.
    """
    first, then, asked = WAYS[way]
    targets = {"kubeconfig": str(cluster.kubeconfig), "namespace": app.namespace}
    if cluster.context:
        targets["context"] = cluster.context
    file = plugin.directory / "web.yaml"
    wrong = {}
    for name, document in DROPPED.items():
        _apply(plugin, file, FULL, first)
        session = Session(global_options=targets)
        assert app.found is not None
        how = applied.apply_method(session.cluster, Observed(app.found), asked, force=False)
        assert bool(how.manager) is (then == SERVER), (way, how)
        planned, refused = applied.dry_run_result(session, Observed(app.found), document, how)
        assert not refused
        _apply(plugin, file, document, then)
        made = app.found
        if _meant(planned) != _meant(made):
            wrong[name] = (_short(planned["spec"]), _short(made["spec"]))
        plugin.shell("kubectl delete tapp web --wait")
    assert not wrong


def _meant(tapp: dict[str, Any]) -> dict[str, Any]:
    """Returns a spec without empty maps: absent, `{}` and null mean the same."""
    return {key: value for key, value in tapp["spec"].items() if value not in (None, {})}


def test_plan_of_a_file_names_the_kind_of_apply(app: App, plugin: Plugin) -> None:
    """The file has no `statuses`: the plan also names the killed instance that starts again."""
    file = plugin.directory / "web.yaml"
    for options, said in ((SERVER, "--server-side` would"), ([], "apply` (client-side)")):
        _apply(plugin, file, FULL, options)
        app.settle()
        file.write_text(yaml.safe_dump(without("statuses")))
        out = plugin.run("plan", "-f", str(file))
        assert "1 created" in out
        assert said in out
        plugin.shell("kubectl delete tapp web --wait")


def test_plan_reports_conflicts_and_old_versions_in_one_sentence(app: App, plugin: Plugin) -> None:
    """The output must contain neither the advice nor the patch that kubectl prints."""
    file = plugin.directory / "web.yaml"
    _apply(plugin, file, FULL, SERVER)
    app.settle()
    plugin.run("scale", "web", "--replicas", "5", "-y")
    out = plugin.run("plan", "-f", str(file), code=1)
    assert 'Apply failed with 1 conflict: conflict with "kubectl-tapp"' in out
    assert ".spec.replicas" in out
    assert "Please review" not in out
    plugin.run("plan", "-f", str(file), "--server-side", "--force-conflicts")
    file.write_text(yaml.safe_dump({**FULL, "spec": {**FULL["spec"], "replicas": "two"}}))
    out = plugin.run("plan", "-f", str(file), "--server-side", code=1)
    assert "this edit is refused" in out
    assert "spec.replicas" in out

    stale = copy.deepcopy(FULL)
    stale["metadata"]["resourceVersion"] = "1"
    file.write_text(yaml.safe_dump(stale))
    out = plugin.run("plan", "-f", str(file), "--no-server-side", code=1)
    assert "the object has been modified" in out
    assert "remove metadata.resourceVersion" in out
    assert "{" not in out


def _apply(plugin: Plugin, file: Path, document: Json, options: list[str]) -> None:
    file.write_text(yaml.safe_dump(document))
    plugin.shell(f"kubectl apply {' '.join(options)} -f {file}")


def _short(spec: Json) -> Json:
    """Returns the fields that the cases change."""
    pool = sorted(spec.get("templatePool") or {})
    return {"pool": pool, **{key: spec.get(key) for key in ("templates", "statuses", "replicas")}}
