"""Draws random TApps for the model, and provides the edits that users make.

A function that begins with `set_` changes the spec in its first argument. `name` is the name of a
template in the spec.
"""

from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.builders import claim_template

Document = dict[str, Any]

GOOD = ("app:1", "app:2", "app:3", "app:two")
SAME = ("app:2", "app:two")
"""Two tags that name the same image."""
OWN_IMAGE = "app:$(tapp.values.tag)"
DEFAULTS = {"tag": "1", "tier": "x", "mode": "a"}
"""`spec.defaultValues`: the values of instances that have no own values."""
OWN = {"tag": ("1", "2", "3"), "tier": ("x", "y"), "mode": ("a", "b", "$(tapp.index)")}
"""Key of a value -> texts with which pods become Ready."""
own_values = st.sampled_from([(key, text) for key, texts in OWN.items() for text in (*texts, None)])
SLOW = "app:3"
"""An image whose readiness probe succeeds late, and whose startup probe succeeds even later."""
BAD, CRASHING, UNREADY = "bad:1", "crash:1", "unready:1"
POOL = ("default", "blue", "green")
TYPO = "bleu"
MOST = 6
HOOK = {"postStart": {"exec": {"command": ["true"]}}}
"""A postStart hook that takes time; the cluster sets the number of seconds for each image."""
RESTART = "apps.tkestack.io/restart-in-place"
PRIORITY = "apps.tkestack.io/update-priority"
ZONE = "topology.kubernetes.io/zone"
RESTART_INSTANCE = "apps.tkestack.io/restart-instance"
_FIELD = {"apiVersion": "v1", "fieldPath": "metadata.labels['tier']"}
TIER = {"name": "TIER", "valueFrom": {"fieldRef": _FIELD}}
LIVENESS = {"exec": {"command": ["true"]}}
"""A liveness probe, which containers need so that an event can make it fail."""
GATE = {"conditionType": "apps.tkestack.io/InPlaceUpdateReady"}

images = st.sampled_from([*GOOD, *GOOD, BAD, CRASHING, UNREADY])
good_images = st.sampled_from(GOOD)
names = st.sampled_from(POOL)
instances = st.integers(0, MOST - 1)
replicas = st.sampled_from([0, 1, 2, 3, 4, 4, 5, 6])
graces = st.sampled_from([0, 1, 1, 4, 4, 20])
lost_node_seconds = st.sampled_from([0, 3, 10, 40, None])
orders = st.sampled_from([None, "Ascending", "Descending"])
partitions = st.sampled_from([None, 0, 1, 2, 2, 3, 6, "30%", "50%", "99%", "100%"])
priorities = st.sampled_from([None, "0", "1", "-1", "high", "$(tapp.index)"])
deadlines = st.sampled_from([None, 0, 5, 20, 60])
hold_limits = st.sampled_from([None, None, None, 0, 3, 20])
hold_reasons = st.sampled_from(["match 1", "match 2", "match 3", ""])
hold_kinds = st.sampled_from([None, None, "update", "delete", "Update"])
policies = st.sampled_from([None, "Parallel", "OrderedReady", "OrderedReady"])
budgets = st.sampled_from([1, 1, 2, 3, "25%", "50%", "100%"])


cpus = st.sampled_from(["1", "2"])
sizes = st.sampled_from(
    [
        None,
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "2"}},
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "2"}},
        {"requests": {"cpu": "1", "memory": "16Mi"}},
        {"requests": {"cpu": "1"}, "limits": {"memory": "64Mi"}},
        {"requests": {"cpu": "1"}, "limits": {"memory": "32Mi"}},
        {"limits": {"cpu": "2", "memory": "32Mi"}},
    ]
)
burstable = st.sampled_from(
    [
        {"requests": {"cpu": "1"}},
        {"requests": {"cpu": "2"}},
        {"requests": {"cpu": "1", "memory": "16Mi"}},
        {"requests": {"cpu": "2", "memory": "32Mi"}},
    ]
)
"""Resources in an order in which most pods can be resized from one to the next."""
modes = st.sampled_from([None, "Ignore", "InPlace", "InPlace"])
OWN_POLICIES = ["Always", "OnFailure", "Never"]
CPU_RESTARTS = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
resize_policies = st.sampled_from(
    [None, None, CPU_RESTARTS, [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]]
)

_probe = st.fixed_dictionaries(
    {
        "exec": st.just({"command": ["true"]}),
        "periodSeconds": st.sampled_from([1, 3, 10]),
        "failureThreshold": st.just(30),
    },
    optional={"initialDelaySeconds": st.sampled_from([2, 5])},
)
probes = st.one_of(
    st.just({}),
    st.just({}),
    st.fixed_dictionaries({}, optional={"startupProbe": _probe, "readinessProbe": _probe}),
)


@st.composite
def templates(draw: st.DrawFn) -> Document:
    """Draws a pod template with a container `app`, and sometimes with a sidecar or an init
    container.
    """
    container: Document = {"name": "app", "image": draw(good_images), "lifecycle": HOOK}
    spec: Document = {"containers": [container]}
    policy = draw(st.sampled_from(["", "", "Always", "OnFailure", "Never"]))
    if policy:
        spec["restartPolicy"] = policy
    put(container, "restartPolicy", draw(st.sampled_from([None, None, None, *OWN_POLICIES])))
    spec["terminationGracePeriodSeconds"] = draw(st.sampled_from([30, 5, 1]))
    container.update(draw(probes))
    if draw(st.booleans()):
        container["livenessProbe"] = deepcopy(LIVENESS)
    if draw(st.sampled_from([False, False, True])):
        container["env"] = [TIER]
    if draw(st.booleans()):
        put(container, "resources", draw(sizes))
    put(container, "resizePolicy", draw(resize_policies))
    if draw(st.sampled_from([True, True, False])):
        spec["readinessGates"] = [deepcopy(GATE)]
    extra = draw(st.sampled_from(["", "", "sidecar", "native", "init"]))
    if extra == "sidecar":
        helper: Document = {"name": "log", "image": "log:1"}
        put(helper, "resources", draw(sizes))
        spec["containers"].append(helper)
    elif extra:
        init: Document = {"name": extra, "image": "init:1"}
        spec["initContainers"] = [
            {**init, "restartPolicy": "Always"} if extra == "native" else init
        ]
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


@st.composite
def tapps(draw: st.DrawFn) -> Document:
    """Draws the spec of a TApp with three templates; most fields are set in some TApps only."""
    spec: Document = {
        "replicas": draw(st.integers(1, MOST)),
        "template": draw(templates()),
        "templatePool": {"blue": draw(templates()), "green": draw(templates())},
        "updateStrategy": {"maxUnavailable": draw(budgets)},
        "defaultValues": dict(DEFAULTS),
    }
    if draw(st.booleans()):
        spec["updateStrategy"]["forceUpdate"] = {"maxUnavailable": draw(budgets)}
    if draw(st.sampled_from([True, True, False])):
        set_grace(spec, draw(graces))
    if draw(st.booleans()):
        set_pre_pull(spec, pulls=True)
    spec["updateStrategy"]["order"] = draw(orders)
    put(spec["updateStrategy"], "partition", draw(partitions))
    put(spec, "progressDeadlineSeconds", draw(deadlines))
    set_hold_limits(spec, draw(hold_limits), draw(hold_limits))
    put(spec, "podManagementPolicy", draw(policies))
    set_mode(spec, draw(modes))
    if draw(st.booleans()):
        spec["forceDeletePod"] = True
    spec["templates"] = draw(st.dictionaries(instances.map(str), names, max_size=2))
    if draw(st.sampled_from([False, False, True])):
        spec["volumeClaimTemplates"] = [claim_template()]
        spec["persistentVolumeClaimRetentionPolicy"] = draw(retentions)
    if draw(st.booleans()):
        set_service(spec, draw(service_ports))
        spec["serviceRetentionPolicy"] = {"whenKilled": draw(_policies)}
    set_evictions(spec, draw(evictions))
    return spec


SIZES = ("1Gi", "2Gi", "1536Mi", "4096Mi")


_policies = st.sampled_from(["Retain", "Delete"])
retentions = st.fixed_dictionaries({"whenDeleted": _policies, "whenScaled": _policies})


evictions = st.sampled_from([None, None, 0, 1, 2, "30%"])


def set_evictions(spec: Document, most: int | str | None) -> None:
    """Sets how many instances evictions may take; None removes the budget of evictions."""
    put(spec, "disruptionBudget", None if most is None else {"maxUnavailable": most})


service_ports = st.sampled_from([80, 81, "8$(tapp.index)", None])


def set_service(spec: Document, port: int | str | None) -> None:
    """Sets the port in the template of the instances' Services; None removes the Services."""
    template = {"spec": {"ports": [{"port": port}]}}
    put(spec, "serviceTemplate", None if port is None else template)


def body_of(spec: Document, name: str) -> Document:
    """Returns the pod template with this name in the spec, not a copy, so that it can be edited."""
    body: Document = spec["template"] if name == "default" else spec["templatePool"][name]
    return body


def set_image(spec: Document, name: str, image: str) -> None:
    body_of(spec, name)["spec"]["containers"][0]["image"] = image


def set_images(spec: Document, image: str) -> None:
    """Sets the image of the first container in all templates."""
    for name in POOL:
        set_image(spec, name, image)


def roll_one_by_one(spec: Document, image: str) -> None:
    """Gives all instances one plain template with this image, so that one instance is updated at a
    time.

    The TApp gets four instances.
    """
    body: Document = {"containers": [{"name": "app", "image": image}]}
    spec.update(
        replicas=4,
        template={"metadata": {"labels": {"app": "web"}}, "spec": body},
        templates={},
        statuses={},
        updateStrategy={"maxUnavailable": 1},
    )
    for key in ("defaultTemplateName", "podManagementPolicy"):
        spec.pop(key, None)


def set_helper_image(spec: Document, name: str, tag: int) -> None:
    """Sets the tag of the images of all containers except the first one, which is the
    application.
    """
    body = body_of(spec, name)["spec"]
    for helper in (*body["containers"][1:], *body.get("initContainers", [])):
        helper["image"] = f"{helper['image'].partition(':')[0]}:{tag}"


def set_env(spec: Document, name: str, value: str) -> None:
    container = body_of(spec, name)["spec"]["containers"][0]
    kept = [item for item in container.get("env", []) if item == TIER]
    container["env"] = [*kept, {"name": "MODE", "value": value}]


def set_probes(spec: Document, name: str, probes: Document) -> None:
    container = body_of(spec, name)["spec"]["containers"][0]
    for key in ("startupProbe", "readinessProbe"):
        container.pop(key, None)
    container.update(deepcopy(probes))


def set_gate(spec: Document, name: str, *, has_gate: bool) -> None:
    body = body_of(spec, name)["spec"]
    body.pop("readinessGates", None)
    if has_gate:
        body["readinessGates"] = [deepcopy(GATE)]


def set_domain(spec: Document) -> None:
    """Sets `updateStrategy.domain`, if the budget is more than one instance."""
    strategy = spec["updateStrategy"]
    put(strategy, "domain", ZONE if strategy["maxUnavailable"] not in (1, "25%") else None)


def set_grace(spec: Document, seconds: int) -> None:
    """Sets the seconds that a pod spends outside its Services before an update in place."""
    spec["updateStrategy"].setdefault("inPlaceUpdateStrategy", {})["gracePeriodSeconds"] = seconds


def set_pre_pull(spec: Document, *, pulls: bool) -> None:
    """Sets whether nodes pull new images before an update stops a container."""
    spec["updateStrategy"].setdefault("inPlaceUpdateStrategy", {})["prePull"] = pulls


def set_resources(spec: Document, name: str, size: Document | None, *, helper: bool) -> None:
    """Sets the resources of the first container or, with `helper`, of the last one; None removes
    them.
    """
    for container in body_of(spec, name)["spec"]["containers"][-1 if helper else 0 :][:1]:
        put(container, "resources", deepcopy(size))


def set_mode(spec: Document, mode: str | None) -> None:
    """Sets how the TApp handles changed resources: `Ignore`, `InPlace`, or None for the default."""
    strategy = spec["updateStrategy"].setdefault("inPlaceUpdateStrategy", {})
    strategy["resources"] = mode


def put(where: Document, key: str, value: object) -> None:
    """Sets the field `key` of the object `where`; None removes the field."""
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value


def set_label(spec: Document, name: str, value: str | None) -> None:
    put(body_of(spec, name)["metadata"]["labels"], "tier", value)


def set_own(spec: Document, name: str, where: str) -> None:
    """Puts a placeholder for a per-instance value into a template.

    `where` is the key of the value: `tag` puts it into the image, `tier` into the label, any other
    key into the environment.
    """
    value = f"$(tapp.values.{where})"
    if where == "tag":
        set_image(spec, name, OWN_IMAGE)
    elif where == "tier":
        set_label(spec, name, value)
    else:
        set_env(spec, name, value)


def set_value(spec: Document, id: int, where: str, value: str | None) -> None:
    """Sets the per-instance value with the key `where` of one instance; None removes the value."""
    put(spec.setdefault("values", {}).setdefault(str(id), {}), where, value)


def set_restart(spec: Document, name: str, container: str, text: str | None) -> None:
    """Requests a restart in place of a template's container; "" stands for all containers.

    `text` is the value of the annotation, of which each new value is a new request; None removes
    it.
    """
    asked = body_of(spec, name)["metadata"].setdefault("annotations", {})
    put(asked, f"{RESTART}.{container}" if container else RESTART, text)


def set_hold_limits(spec: Document, updates: int | None, deletions: int | None) -> None:
    """Sets the seconds after which holds no longer prevent updates and deletions; None removes a
    limit.
    """
    put(spec["updateStrategy"], "holdTimeoutSeconds", updates)
    put(spec, "deletionHoldTimeoutSeconds", deletions)


def set_priority(spec: Document, name: str, text: str | None) -> None:
    """Sets the update priority of the instances of a template; None removes it."""
    put(body_of(spec, name)["metadata"].setdefault("annotations", {}), PRIORITY, text)


def repair(spec: Document) -> None:
    """Repairs a spec as a user would: afterwards every template exists, and every image can be
    pulled.

    The partition is removed and the rollout is not paused.
    """
    pool = spec.setdefault("templatePool", {})
    for name in POOL[1:]:
        pool.setdefault(name, deepcopy(spec["template"]))
    strategy = spec["updateStrategy"]
    strategy["paused"] = False
    strategy.pop("partition", None)  # a kept instance may never become Ready
    for where, key in ((strategy, "template"), (spec, "defaultTemplateName")):
        if where.get(key) == TYPO:
            del where[key]
    spec["templates"] = {id: name for id, name in spec["templates"].items() if name != TYPO}
    for name in POOL:
        if body_of(spec, name)["spec"]["containers"][0]["image"] not in (*GOOD, OWN_IMAGE):
            set_image(spec, name, GOOD[0])
