"""The CRD's rules on a real API server: refused specs with their messages, and accepted specs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from crds.definition import custom_resource_definition
from tests.builders import claim_template

from .app import GROUP, tapp, template
from .kube import Json, Kube, KubeError
from .waiting import until

pytestmark = pytest.mark.e2e
VALUE = r'Invalid value: ("(object|string|0%|[Kk]ill(ed)?)": |null: |\{.*?\}: )?'
"""Kubernetes inserts the value, or only its type, before the message of the rule."""
TEMPLATE = template()
LABELS_ONLY: Json = {
    "metadata": {"creationTimestamp": None, "labels": {"app": "a"}},
    "spec": {"containers": None},
}
HINT = "there is no template"
NAMES = (
    "look for a mistyped name, or a template that was removed while in use; names are the keys of "
    "spec.templatePool, and 'default' for spec.template"
)
MISSING = (
    "the default template is missing: set spec.template with at least one container, or set "
    "spec.defaultTemplateName to a key of spec.templatePool"
)
BUDGET = "must be a whole number from 1, or a percentage from 1% to 100%, such as 25%"
PARTITION = "must be a whole number from 0, or a percentage from 0% to 100%"
IDS = "keys are instance numbers without leading zeros"
STATUS = 'the only status to ask for is "Killed"'
LISTED = {"replicas": 2, "templatePool": {"a": TEMPLATE}, "templates": {"0": "a", "1": "a"}}


def written(name: str, spec: Json, namespace: str = "default", version: str = GROUP) -> Json:
    """Returns a TApp. Its spec has a template unless it has `template: None`."""
    made = tapp(name, **spec)
    filled = {key: value for key, value in made["spec"].items() if value is not None}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": "TApp", "metadata": metadata, "spec": filled}


def mounting(image: Json) -> Json:
    """Returns a template with an image as a volume."""
    return template(volumes=[{"name": "model", "image": image}])


def create(kube: Kube, document: Json) -> Json:
    """Returns the TApp as the API server would store it.

    The dry run prevents that anything runs it.
    """
    return kube.request("POST", kube.path_of(document, named=False), document, {"dryRun": "All"})


REFUSED = {
    "a mistyped template": ({"templates": {"1": "b"}}, f'spec.templates: {HINT} "b": {NAMES}'),
    "a mistyped default": ({"defaultTemplateName": "b"}, f'defaultTemplateName: {HINT} "b"'),
    "the old spelling, mistyped": ({"DefaultTemplateName": "b"}, f'{HINT} "b"'),
    "a mistyped rolling template": (
        {"updateStrategy": {"template": "b"}},
        f'spec.updateStrategy.template: {HINT} "b"',
    ),
    "no template at all": ({"template": None}, f"spec.template: {MISSING}"),
    "no template for one of the instances": (
        {**LISTED, "replicas": 3, "template": LABELS_ONLY},
        MISSING,
    ),
    "an id with a leading zero": (
        {"templates": {"1": "default", "01": "default"}},
        f'spec.templates: "01": {IDS}',
    ),
    "an id that is no number": ({"statuses": {"x": "Killed"}}, f'spec.statuses: "x": {IDS}'),
    "a negative id": ({"statuses": {"-1": "Killed"}}, f'"-1": {IDS}'),
    "an id with a space": ({"statuses": {" 1": "Killed"}}, f'" 1": {IDS}'),
    "a status in lower case": (
        {"statuses": {"0": "Killed", "1": "killed"}},
        f"spec.statuses[1]: {STATUS}",
    ),
    "a status that is a verb": ({"statuses": {"1": "Kill"}}, f"spec.statuses[1]: {STATUS}"),
    "a status that only status has": ({"statuses": {"1": "Running"}}, STATUS),
    "an empty status": ({"statuses": {"1": ""}}, STATUS),
    "a template forgotten by its indentation": (
        {"templatePool": {"a": None, **TEMPLATE}},
        "spec.templatePool[spec]: no pod can be made of a template without spec.containers",
    ),
    "a template whose containers are misspelt": (
        {"templatePool": {"a": {"spec": {"container": TEMPLATE["spec"]["containers"]}}}},
        "spec.templatePool[a]: no pod can be made of",
    ),
    "a budget of 0": ({"updateStrategy": {"maxUnavailable": 0}}, BUDGET),
    "a budget of 0%": (
        {"updateStrategy": {"maxUnavailable": "0%"}},
        f"spec.updateStrategy.maxUnavailable: {BUDGET}",
    ),
    "a budget above 100%": ({"updateStrategy": {"maxUnavailable": "101%"}}, BUDGET),
    "a number as a string": ({"updateStrategy": {"maxUnavailable": "1"}}, BUDGET),
    "a force budget below 1": ({"updateStrategy": {"forceUpdate": {"maxUnavailable": -1}}}, BUDGET),
    "a negative partition": ({"updateStrategy": {"partition": -1}}, PARTITION),
    "a partition above 100%": ({"updateStrategy": {"partition": "101%"}}, PARTITION),
    "a partition of text": ({"updateStrategy": {"partition": "half"}}, PARTITION),
    "an order that does not exist": (
        {"updateStrategy": {"order": "descending"}},
        'spec.updateStrategy.order: Unsupported value: "descending"',
    ),
    "a deadline before the beginning": ({"progressDeadlineSeconds": -1}, "progressDeadlineSeconds"),
    "two claim templates of one name": (
        {"volumeClaimTemplates": [claim_template("a"), claim_template("a")]},
        "two claim templates have the same metadata.name",
    ),
    "a claim template without a name": (
        {"volumeClaimTemplates": [{"spec": {}}]},
        "each claim template needs a metadata.name",
    ),
    "a service name that is none": ({"serviceName": "a.b"}, "the name of a headless Service"),
}

ACCEPTED: dict[str, Json] = {
    "a partition of 0%": {"updateStrategy": {"partition": "0%"}},
    "a partition of 100%": {"updateStrategy": {"partition": "100%"}},
    "a partition above replicas": {"updateStrategy": {"partition": 100}},
    "names in all places": {
        "templatePool": {"a": TEMPLATE},
        "templates": {"0": "default", "1": "a", "12": "a"},
        "defaultTemplateName": "a",
        "DefaultTemplateName": "overruled",
        "updateStrategy": {"template": "a", "maxUnavailable": "25%"},
    },
    "no template, each instance listed": {**LISTED, "template": None},
    "an empty shell of a template, each instance listed": {
        **LISTED,
        "template": LABELS_ONLY,
        "defaultTemplateName": "default",
        "updateStrategy": {"template": "default"},
    },
    "a killed instance, and one that a smaller number of replicas left behind": {
        "replicas": 2,
        "statuses": {"1": "Killed", "77": "Killed"},
    },
    "nothing to run": {"template": None, "replicas": 0},
    "an image as a volume": {"template": mounting({"reference": "models:1"})},
    "ten thousand listed instances": {
        "replicas": 10_000,
        "templatePool": {"a": TEMPLATE},
        "templates": {str(number): "a" for number in range(10_000)},
    },
}


@pytest.mark.parametrize(("spec", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_crd_refuses_an_invalid_spec(kube: Kube, spec: Json, message: str) -> None:
    """The message must say what to do."""
    with pytest.raises(KubeError) as refusal:
        create(kube, written("t", spec))
    assert refusal.value.status == 422
    # A newer API server inserts the value before the rule's message, an older one (1.33) its type.
    said = re.sub(VALUE, "", refusal.value.message)
    assert message in said


@pytest.mark.parametrize("spec", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_crd_accepts_a_valid_spec(kube: Kube, spec: Json) -> None:
    """The rules must not refuse a spec that can run."""
    create(kube, written("t", {**spec, "replicas": spec.get("replicas", 0)}))


@pytest.mark.parametrize(
    ("name", "replicas", "fits"),
    [
        ("with.dot", 1, False),
        ("n" * 61, 10, True),
        ("n" * 61, 11, False),
        ("n" * 62, 1, False),
        ("n" * 61, 0, True),
    ],
    ids=[
        "a dot",
        "63 characters with one digit",
        "64 characters with two digits",
        "64 characters with one digit",
        "no instances",
    ],
)
def test_crd_refuses_pod_names_that_are_no_host_names_with_a_service_name(
    kube: Kube, name: str, replicas: int, fits: bool
) -> None:
    """With serviceName the longest pod name must be a DNS label. Without serviceName any length is
    valid.
    """
    create(kube, written(name, {"replicas": replicas}))
    served = written(name, {"replicas": replicas, "serviceName": "web"})
    if fits:
        create(kube, served)
    else:
        with pytest.raises(KubeError, match=r"spec\.serviceName.*hostname"):
            create(kube, served)


@pytest.mark.parametrize(
    ("name", "replicas", "fits"),
    [("with.dot", 0, False), ("n" * 61, 10, True), ("n" * 61, 11, False)],
    ids=["a dot", "63 characters with one digit", "64 characters with two digits"],
)
def test_crd_refuses_pod_names_that_no_service_can_have_with_a_service_template(
    kube: Kube, name: str, replicas: int, fits: bool
) -> None:
    """With serviceTemplate the name of each instance's Service must be a DNS label."""
    create(kube, written(name, {"replicas": replicas}))
    served = written(name, {"replicas": replicas, "serviceTemplate": {"spec": {}}})
    if fits:
        create(kube, served)
    else:
        with pytest.raises(KubeError, match=r"spec\.serviceTemplate.*Service"):
            create(kube, served)


def test_crd_refuses_the_removal_of_a_template_in_use(kube: Kube, namespace: str) -> None:
    """Without its template, an instance could not be created again."""
    kube.create(written("t", {**LISTED, "template": None}, namespace))
    with pytest.raises(KubeError, match=r'no template "a"'):
        kube.patch(
            kube.path(GROUP, "tapps", namespace, "t"), {"spec": {"templatePool": {"a": None}}}
        )


@pytest.mark.parametrize("field", ["templates", "statuses", "templatePool"])
def test_server_side_apply_can_remove_the_last_entry_of_a_map(
    kube: Kube, kubectl: Callable[..., str], namespace: str, field: str
) -> None:
    """An applied `templates: {}` reaches the schema as null, which must count as an empty map."""
    entries = {
        "templates": {"0": "a"},
        "statuses": {"1": "Killed"},
        "templatePool": {"b": TEMPLATE},
    }
    whole = {"template": TEMPLATE, "templatePool": {"a": TEMPLATE}} | {field: entries[field]}
    document = written("t", whole, namespace)

    def apply() -> Json:
        text = json.dumps(document)
        kubectl("apply", "--server-side", "-f", "-", stdin=text)
        return kube.get(GROUP, "tapps", namespace, "t")

    apply()
    document["spec"] = {**document["spec"], field: {}}
    for replicas in (3, 4):  # the second time with the stored null
        document["spec"]["replicas"] = replicas
        found = apply()
        assert not found["spec"].get(field)
    kube.patch(kube.path(GROUP, "tapps", namespace, "t"), {"spec": {"replicas": 2}})
    with pytest.raises(KubeError, match=HINT):
        kube.patch(
            kube.path(GROUP, "tapps", namespace, "t"), {"spec": {"defaultTemplateName": "nobody"}}
        )
    document["spec"] = {**document["spec"], "replicas": 2, field: entries[field]}
    assert apply()["spec"][field] == entries[field]


def test_crd_sets_defaults_and_prunes_unknown_fields(kube: Kube) -> None:
    """Replicas default to 1, nulls are dropped, and only templates keep unknown fields."""
    body = template()
    body["spec"]["containers"][0] |= {
        "fieldOfTheFuture": {"a": 1},
        "command": None,
        "resources": {"limits": {"cpu": 0.5}},
        "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53}],
    }
    templates = {"template": body, "templatePool": {"p": body}}
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {"future": 1}}]}
    made = create(kube, written("t", {"replicas": None, "typo": 1, **templates, **claims}))
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert made["spec"]["replicas"] == 1
    assert set(made["spec"]) == {"replicas", *templates, *claims}
    assert made["spec"]["templatePool"]["p"]["spec"]["containers"] == [container]
    assert made["spec"]["volumeClaimTemplates"][0]["spec"] == {"future": 1}
    assert container["fieldOfTheFuture"] == {"a": 1}
    assert container["resources"]["limits"]["cpu"] == 0.5
    assert "command" not in container
    assert len(container["ports"]) == 2
    assert "protocol" not in container["ports"][1]
    assert made["spec"]["template"]["metadata"]["labels"] == TEMPLATE["metadata"]["labels"]


# --- TApps from before ----------------------------------------------------------------------------

OLD_GROUP = "old.tkestack.test"
OLD_API = f"{OLD_GROUP}/v1"
OLD_SPEC: Json = {
    "replicas": 2,
    "defaultTemplateName": "gone",
    "template": LABELS_ONLY,
    "templatePool": {"a": mounting({"reference": ""}), "empty": None, "hollow": LABELS_ONLY},
    "templates": {"0": "a", "1": "a", "7": "gone", "01": "a"},
    "statuses": {"x": "Killed", "0": "Running", "1": "killed"},
    "updateStrategy": {
        "template": "gone",
        "maxUnavailable": 0,
        "forceUpdate": {"maxUnavailable": "0%"},
    },
    "volumeClaimTemplates": [claim_template("d"), claim_template("d")],
    "serviceName": "not.a.label",
}
HOLLOW_SPEC: Json = {"template": LABELS_ONLY, "templatePool": {"a": LABELS_ONLY}}


def renamed_definition() -> Json:
    """Returns the CRD under another group, so that the tests do not change the real one."""
    definition = custom_resource_definition()
    definition["metadata"]["name"] = f"tapps.{OLD_GROUP}"
    definition["spec"]["group"] = OLD_GROUP
    del definition["spec"]["names"]["shortNames"], definition["spec"]["names"]["categories"]
    return definition


def permissive_definition() -> Json:
    """Returns the CRD of the other group without rules, like the old controller's definition."""
    definition = renamed_definition()
    definition["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    return definition


def accepts(kube: Kube, path: str, made: Json, **query: str) -> bool:
    """Returns True if the API server accepts the TApp."""
    try:
        kube.request("POST", path, made, query)
    except KubeError:
        return False
    return True


@pytest.fixture
def old(kube: Kube, namespace: str) -> Iterator[str]:
    """Yields the path of a TApp with all faults that the old controller accepted."""
    kube.apply(permissive_definition())
    path = kube.path(OLD_API, "tapps", namespace)
    first, second, probe = (
        written(name, spec, namespace, OLD_API)
        for name, spec in (("old.one", OLD_SPEC), ("old.two", HOLLOW_SPEC), ("probe", OLD_SPEC))
    )
    crds = ("apiextensions.k8s.io/v1", "customresourcedefinitions", None)
    try:
        until(lambda: accepts(kube, path, first), "the kind is served", 60)
        kube.request("POST", path, second)
        kube.apply(renamed_definition())
        until(lambda: not accepts(kube, path, probe, dryRun="All"), "the rules are in force", 60)
        yield f"{path}/old.one"
    finally:
        kube.delete(*crds, f"tapps.{OLD_GROUP}")
        gone = "it would take no new objects"
        until(lambda: kube.find(*crds, f"tapps.{OLD_GROUP}") is None, gone, 60)


def test_old_invalid_tapp_accepts_harmless_changes_and_no_new_mistakes(
    kube: Kube, old: str
) -> None:
    """Finalizers, scaling, status and unrelated changes must pass, but new mistakes must not."""
    harmless: list[Json] = [
        {"metadata": {"finalizers": ["metacontroller.io/test"]}},
        {"spec": {"replicas": 5}},
        {"spec": {"minReadySeconds": 3}},
        {"spec": {"templates": {"2": "a"}}},
        {"spec": {"statuses": {"2": "Killed", "0": None}}},
        {"spec": {"statuses": {"2": None}}},
        {"spec": {"templatePool": {"b": TEMPLATE}}},
        {"spec": {"updateStrategy": {"paused": True}}},
        {"metadata": {"finalizers": None}},
    ]
    for patch in harmless:
        kube.patch(old, patch)
    kube.request("PATCH", f"{old}/scale", {"spec": {"replicas": 6}})
    kube.request("PATCH", f"{old}/status", {"status": {"readyReplicas": 1}})
    mistakes: list[Json] = [
        {"spec": {"templates": {"3": "mistyped"}}},
        {"spec": {"templates": {"02": "a"}}},
        {"spec": {"statuses": {"0": "Running"}}},
        {"spec": {"statuses": {"1": "Kill"}}},
        {"spec": {"statuses": {"02": "Killed"}}},
        {"spec": {"templatePool": {"a": None}}},
        {"spec": {"templatePool": {"c": LABELS_ONLY}}},
        {"spec": {"defaultTemplateName": "mistyped"}},
        {"spec": {"updateStrategy": {"template": "mistyped"}}},
        {"spec": {"updateStrategy": {"maxUnavailable": -1}}},
        {"spec": {"serviceName": "other.name"}},
    ]
    for patch in mistakes:
        with pytest.raises(KubeError) as refusal:
            kube.patch(old, patch)
        assert refusal.value.status == 422, patch


def test_old_tapp_without_containers_accepts_changes(kube: Kube, old: str) -> None:
    """A stored `containers: null` counts as no containers, so the first write adds no mistake."""
    hollow = old.replace("old.one", "old.two")
    kube.request("PATCH", f"{hollow}/status", {"status": {"readyReplicas": 1}})
    kube.patch(hollow, {"metadata": {"finalizers": ["metacontroller.io/test"]}})
    kube.patch(hollow, {"spec": {"templatePool": {"a": TEMPLATE}}})
    with pytest.raises(KubeError, match=r"spec.templatePool\[a\]: .*no pod can be made"):
        kube.patch(hollow, {"spec": {"templatePool": {"a": {"spec": None}}}})
    kube.patch(hollow, {"metadata": {"finalizers": None}})
