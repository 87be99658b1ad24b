"""Tests that `plan` sends a dry run with a pod, claim and Service of each new template to the API
server.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kubectl_tapp.base.observed import Observed
from kubectl_tapp.edit.trial import trials
from tapp.kube.owners import controller_of
from tests.builders import claim_template, manifest, template
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.scenarios.life import Life

LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
CLAIM = claim_template("data")
SERVICE = {"spec": {"ports": [{"port": 80}]}}


@pytest.fixture
def planned(tmp_path: Path) -> Callable[..., Any]:
    """Returns a function that plans a file for a TApp with three running instances.

    The function returns the output of the plan, and the calls of `kubectl create`. Its argument
    `said` is the error of these calls; "" lets them succeed.
    """

    def plan(said: str = "", *options: str, before: Document | None = None, **spec: Any) -> Any:
        web = StandIn(Life().apply(before or manifest(replicas=3)).world)
        if said:
            web.failing["create --filename=-"] = said
        file = tmp_path / "web.json"
        file.write_text(json.dumps(manifest(replicas=3, **spec)))
        found = kubectl_tapp(web, "plan", "-f", str(file), *options)
        return found, [call for call in web.calls if "create" in call]

    return plan


def tried(**spec: Any) -> list[tuple[str, bool, Document]]:
    """Returns the dry runs for an edit of a TApp with three running instances.

    Each has a description, True if the template is changed, and the object that is sent.
    """
    world = Life().apply(manifest(replicas=3)).world
    observed = Observed(world.get("TApp", "web"), pods=world.list("Pod", "default"))
    edited = {**observed.tapp, "spec": {**observed.tapp["spec"], **spec}}
    return [
        (each.description, each.changed, each.document) for each in trials(observed, edited, 300)
    ]


CASES: dict[str, tuple[Document, list[str]]] = {
    "nothing changes": ({}, []),
    "only the number of instances": ({"replicas": 9}, []),
    "the default template": ({"template": template("web:2")}, ["pods of template 'default'"]),
    "a template that nobody runs": (
        {"templatePool": {"blue": template("web:2")}}, ["pods of template 'blue'"]),
    "two templates": (
        {"template": template("web:2"), "templatePool": {"blue": template("web:3")},
         "templates": {"1": "blue"}},
        ["pods of template 'default'", "pods of template 'blue'"]),
    "the Service of host names": ({"serviceName": "web"}, ["pods of template 'default'"]),
    "a claim template": (
        {"volumeClaimTemplates": [CLAIM]},
        ["pods of template 'default'", "claims of claim template 'data'"]),
    "a Service each": ({"serviceTemplate": SERVICE}, ["Services of spec.serviceTemplate"]),
    "what the service cannot read": ({"template": {"spec": {"containers": 7}}}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_dry_run_has_one_object_of_each_new_template(case: str) -> None:
    spec, expected = CASES[case]
    assert [what for what, _, _ in tried(**spec)] == expected


def test_object_of_the_dry_run_is_like_that_of_metacontroller() -> None:
    """The pod of the dry run has the label, the owner and the last-applied annotation of
    Metacontroller.

    All fields of the object count for size limits.
    """
    ((_, changed, pod),) = tried(template=template("web:2"))
    metadata = pod["metadata"]
    assert changed
    assert metadata["name"] == "web-0"
    assert metadata["namespace"] == "default"
    owner = controller_of(metadata["ownerReferences"])
    assert owner is not None
    assert metadata["labels"]["controller-uid"] == owner["uid"]
    applied = json.loads(metadata["annotations"][LAST_APPLIED])
    assert applied["spec"] == pod["spec"]


INVALID = 'The Pod "web-0" is invalid: spec.containers[0].ports[0].name: Invalid value: "a"'
FORBIDDEN = 'Error from server (Forbidden): error when creating "STDIN": pods "web-0" is forbidden:'
ANSWERS: dict[str, tuple[str, int, str]] = {
    "invalid": (INVALID, 1, "the API server refuses the pods of template 'default'"),
    "bad request": ("Error from server (BadRequest): Pod in version v1 cannot be handled", 1,
                    "refuses the pods of template 'default'"),
    "PodSecurity": (f'{FORBIDDEN} violates PodSecurity "restricted:latest"', 1, "violates Pod"),
    "a range of limits": (f"{FORBIDDEN} maximum cpu usage per Container is 1", 1, "maximum cpu"),
    "a webhook": ('Error from server: admission webhook "a.b" denied the request: no', 1, "denied"),
    "a quota that must be met": (
        f"{FORBIDDEN} failed quota: q: must specify limits.cpu", 1, "must specify"),
    "a quota that is full": (f"{FORBIDDEN} exceeded quota: q, requested: pods=1, used: pods=3", 0,
                             "the quota of the namespace is used up now"),
    "no such ServiceAccount": (
        f'{FORBIDDEN} error looking up service account default/a: serviceaccount "a" not found', 0,
        "Stuck"),
    "no right": (
        f'{FORBIDDEN} User "jane" cannot create resource "pods" in API group ""', 0,
        "did not check the pods of template 'default': you may not create such an object"),
    "it is there already": (
        'Error from server (AlreadyExists): error when creating "STDIN": pods "web-0" already '
        "exists", 0, "recreated"),
    "a webhook that is down": (
        'Error from server (InternalError): failed calling webhook "a.b"', 0, "did not check"),
    "a webhook without dry runs": (
        'Error from server (BadRequest): admission webhook "a" does not support dry run', 0,
        "did not check"),
    "no answer": ("Unable to connect to the server: dial tcp: i/o timeout", 1, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS)
def test_result_of_the_dry_run_is_printed(planned: Callable[..., Any], case: str) -> None:
    """Plans an edit while the API server responds to the dry run with an error.

    Invalid specs, exceeded quotas and skipped checks have different sentences.
    """
    answer, code, text = ANSWERS[case]
    said, calls = planned(answer, template=template("web:2", nodeSelector={"a": "b"}))
    assert said.code == code, said.out + said.err
    assert text in said.out
    assert ("this edit is refused" in said.out) is (code == 1 and case != "no answer")
    assert len(calls) == 1
    assert "--dry-run=server" in calls[0]


def test_template_that_is_already_refused_does_not_block_another_edit(
    planned: Callable[..., Any],
) -> None:
    """An edit that gives another instance an already refused template is planned, and the instance
    is stuck.
    """
    broken = manifest(replicas=3, templates={"7": "blue"}, templatePool={"blue": template("b:1")})
    spec = {"templates": {"7": "blue", "2": "blue"}, "templatePool": {"blue": template("b:1")}}
    said, _ = planned(INVALID, before=broken, **spec)
    assert said.code == 0
    assert "Stuck" in said.out
    assert "the API server refuses the pods of template 'blue'" in said.out


def test_no_object_is_sent_without_a_dry_run(planned: Callable[..., Any]) -> None:
    said, calls = planned(INVALID, "--no-dry-run", template=template("web:2"))
    assert said.code == 0
    assert calls == []


def test_verb_is_refused_before_the_question_if_its_pods_would_be_refused() -> None:
    web = StandIn(Life().apply(manifest(replicas=3)).world)
    web.failing["create --filename=-"] = INVALID
    said = kubectl_tapp(web, "set", "image", "web", "*=web:2", "-y")
    assert said.code == 1
    assert "the API server refuses the pods of template 'default'" in said.err
    assert "nothing was written" in said.err
    assert not web.writes
    web.failing.clear()
    assert kubectl_tapp(web, "set", "image", "web", "*=web:2", "-y").code == 0
