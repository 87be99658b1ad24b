"""Both admission policies on a real API server. test_lean_pods.py tests `tapp-lean-pods` alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .app import GROUP, App, each, example, tapp, template
from .kube import Json, Kube
from .policies import LEAN, UNUSED, pooled, stored_pool

pytestmark = pytest.mark.e2e


def test_policy_deletes_exactly_the_templates_without_a_reference(
    kube: Kube, namespace: str, install: Callable[..., None]
) -> None:
    install(UNUSED)
    names = ("listed", "with/slash", "with~tilde", "lower", "upper", "rolling", "default")
    spec: Json = {
        "templates": {"1": "listed"},
        "defaultTemplateName": "lower",
        "DefaultTemplateName": "upper",
        "updateStrategy": {"template": "rolling"},
    }
    used = ["listed", "lower", "rolling", "upper"]
    assert stored_pool(kube, pooled(names, **spec)) == used
    unwanted = pooled(names, **spec, autoDeleteUnusedTemplate=False)
    assert stored_pool(kube, unwanted) == sorted(names)
    unwanted["metadata"]["namespace"] = namespace
    kube.create(unwanted)
    path = kube.path(GROUP, "tapps", namespace, "pooled")
    cleaned = kube.patch(path, {"spec": {"autoDeleteUnusedTemplate": True}})
    assert sorted(cleaned["spec"]["templatePool"]) == used


def two_protocols(image: str = "app:1") -> Json:
    """Returns a template whose container has one port for TCP and UDP."""
    made = template(image)
    made["spec"]["containers"][0]["ports"] = [
        {"name": "dns", "containerPort": 53, "protocol": "UDP"},
        {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
    ]
    return made


def ports(pod: Json) -> list[str]:
    return [port["protocol"] for port in pod["spec"]["containers"][0]["ports"]]


def test_policy_deletes_an_unused_template_at_the_next_write_of_the_tapp(
    app: App, install: Callable[..., None]
) -> None:
    """Both policies are in force."""
    install()
    app.apply(*example("unused-templates/1-create")).settle()
    assert app.wrote(*each("create Pod", "tidy", 0, 1, 2))
    app.apply(*example("unused-templates/2-unused")).settle()
    assert list(app.found["spec"]["templatePool"]) == ["green"]  # type: ignore[index]
    assert app.condition("UnusedTemplates") == ""
    assert app.wrote("update Pod tidy-0")
    assert app.idle()


def test_port_with_two_protocols_works_with_the_lean_policy(
    app: App, install: Callable[..., None]
) -> None:
    install(LEAN)
    app.apply(tapp(template=two_protocols())).settle()
    assert app.wrote(*each("create Pod", "web", 0, 1, 2))
    assert app.idle()
    app.patch(template=two_protocols("app:2")).settle()
    assert app.wrote_in_order(*each("update Pod", "web", 0, 1, 2))
    assert [ports(pod) for pod in app.pods.values()] == [["UDP", "TCP"]] * 3
    assert app.condition("DuplicateMergeKeys") == ""
    assert app.idle()


def test_port_with_two_protocols_is_reported_without_the_lean_policy(
    app: App, install: Callable[..., None]
) -> None:
    """The pods run, a condition reports the ports, and other instances go on.

    Its advice repairs the TApp.
    """
    mixed = {"templatePool": {"dns": two_protocols()}, "templates": {"1": "dns"}}
    app.apply(tapp(**mixed))
    app.until(lambda: app.statuses == "Running Running Running", "all instances run")
    app.until(lambda: app.condition("DuplicateMergeKeys") != "", "DuplicateMergeKeys is reported")
    assert app.condition("DuplicateMergeKeys").startswith("True NotMergeable: instance 1: ")
    assert ports(app.pod(1)) == ["UDP", "TCP"]
    born = app.uids()
    app.patch(template=template("app:2"))
    app.until(lambda: app.images() == "app:2 app:1 app:2", "instances 0 and 2 are updated")
    app.until(lambda: app.statuses == "Running Running Running", "all instances run")
    assert app.uids() == born
    install(LEAN)
    app.patch(statuses={"1": "Killed"})
    app.until(lambda: app.statuses == "Running Killed Running", "instance 1 is killed")
    app.patch(statuses={"1": None}).settle()
    assert app.condition("DuplicateMergeKeys") == ""
    assert {**app.uids(), 1: ""} == {**born, 1: ""}
    assert {write.name for write in app.news(refused=(409, 422)) if write.code == 422} == {"web-1"}
    assert app.idle()
