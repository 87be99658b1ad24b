"""Checks that a TApp has reached the state that its spec describes, after all faults have ended.

`is_as_specified` is the entry point.
"""

from __future__ import annotations

from typing import Any

from simulator.api.controllers import claims_of
from simulator.world import World
from tapp.kube.resources import compare
from tests.hook_calls import (
    DRAIN,
    LOST,
    conditions,
    default_name,
    images,
    is_open,
    note,
    ready,
    should_run,
    storage,
)
from tests.invariants import ViolationError
from tests.kept_instances import kept_template
from tests.model import specs
from tests.model.resizes import ResizeJudge, is_resizable
from tests.model.service import mirrored
from tests.model.snapshots import asked_for, containers, resources_mode

Document = dict[str, Any]

NAME = "web"


def is_as_specified(world: World, resizes: ResizeJudge, *, mirror: bool) -> None:
    """Checks that each instance runs its template, and that no other pods, claims or Services
    exist.

    `resizes` knows which pods have been resized. `mirror` is True if an admission policy rewrites
    all images. Raises ViolationError.
    """
    tapp = dict(world.get("TApp", NAME))
    pods = {pod["metadata"]["name"]: pod for pod in world.list("Pod")}
    spec = tapp["spec"]
    records = {one["metadata"]["name"]: one for one in world.list("ControllerRevision")}
    children = {"Pod.v1": pods, "ControllerRevision.apps/v1": records}
    request = {"parent": tapp, "children": children}
    running = should_run(request)
    wanted = {f"{NAME}-{id}" for id in running}
    if not wanted <= pods.keys():
        raise ViolationError(f"P3: {wanted - pods.keys()} do not run\n{world.dump()}")
    claims = {claim["metadata"]["name"]: claim for claim in world.list("PersistentVolumeClaim")}
    for name in wanted:
        lost = set(claims_of(pods[name])) - claims.keys()
        if lost:
            raise ViolationError(f"P3: {name} has lost {lost}\n{world.dump()}")
    for each in spec.get("volumeClaimTemplates") or []:
        for id in running:
            claim = claims.get(f"{each['metadata']['name']}-{NAME}-{id}")
            if claim is not None and compare(storage(claim), storage(each)) < 0:
                raise ViolationError(f"P3: a claim of {NAME}-{id} is smaller than its template")
    for id in range(spec["replicas"], specs.MOST):
        if f"{NAME}-{id}" in pods:
            raise ViolationError(f"P3: {NAME}-{id} is still there")
    _has_services(world, spec, {*range(spec["replicas"])})
    _has_disruption_budget(world, spec, len(running))
    for id in running:
        pod, body = pods[f"{NAME}-{id}"], kept_template(request, tapp["status"], id)
        assert body is not None, default_name(spec)
        _runs(world, pod, body, mirror=mirror)
        _has_resources(resizes, pod, body, resources_mode(spec))
    conditions = {item["type"]: item for item in tapp["status"]["conditions"]}
    if conditions["Progressing"]["reason"] != "Complete":
        raise ViolationError(f"P3: {conditions['Progressing']}")
    if tapp["status"]["observedGeneration"] != tapp["metadata"]["generation"]:
        raise ViolationError("P3: status.observedGeneration is behind")


def _has_services(world: World, spec: Document, numbers: set[int]) -> None:
    """Checks that each of these instances has the Service of the template, and that no other
    Service exists.

    A killed instance has no Service if the policy for Services says so.
    """
    template, killed = spec.get("serviceTemplate"), spec.get("statuses") or {}
    kept = (spec.get("serviceRetentionPolicy") or {}).get("whenKilled") != "Delete"
    wanted = {id for id in numbers if template and (kept or killed.get(str(id)) != "Killed")}
    found = {service["metadata"]["name"]: service for service in world.list("Service")}
    if found.keys() != {f"{NAME}-{id}" for id in wanted}:
        raise ViolationError(f"P3: there are Services {[*found]}, wanted {wanted}")
    for id in wanted:
        port = str(template["spec"]["ports"][0]["port"]).replace("$(tapp.index)", str(id))
        if found[f"{NAME}-{id}"]["spec"]["ports"][0]["port"] != int(port):
            raise ViolationError(f"P3: the Service of {NAME}-{id} has another port than {port}")


def _has_disruption_budget(world: World, spec: Document, running: int) -> None:
    """Checks that the PodDisruptionBudget leaves as many instances as `spec.disruptionBudget`
    says, and that there is none without the field.

    `running` is the number of instances that should run.
    """
    found = {each["metadata"]["name"]: each["spec"] for each in world.list("PodDisruptionBudget")}
    budget = spec.get("disruptionBudget")
    if budget is None:
        if found:
            raise ViolationError(f"P3: there are PodDisruptionBudgets {[*found]}")
        return
    most = budget["maxUnavailable"]
    most = -(-int(most[:-1]) * running // 100) if isinstance(most, str) else most
    if found.keys() != {NAME} or found[NAME]["minAvailable"] != max(0, running - most):
        raise ViolationError(f"P3: {found} is to leave {running} less {most}")


def _has_resources(resizes: ResizeJudge, pod: Document, body: Document, mode: str | None) -> None:
    """Checks that a pod and its running containers have the resources of the pod template `body`.

    `mode` is `updateStrategy.inPlaceUpdateStrategy.resources`. With `Ignore`, the pod's resources
    may differ from the template's.
    """
    name = pod["metadata"]["name"]
    if resizes.is_under_way(pod):
        raise ViolationError(f"P3: {name} has not the resources of its spec")
    if mode == "Ignore":
        return
    does = mode == "InPlace" and resizes.installed and resizes.kubelets_do
    if pod["metadata"]["uid"] in resizes.touched and not (does and is_resizable(pod, body)):
        return
    given = containers(pod["spec"])
    for one, asked in containers(body["spec"]).items():
        if asked_for(given[one]) != asked_for(asked):
            raise ViolationError(f"P3: {name} has {given[one]}, its template says {asked}")


def _has_started_with(world: World, pod: Document, body: Document) -> None:
    """Checks that containers have restarted since their last requested restart.

    A container that reads a label as an environment variable must also have started with the
    label's current value.
    """
    worker = world.kubelet.worker(pod)
    assert worker is not None
    labels, asked = body["metadata"]["labels"], body["metadata"].get("annotations") or {}
    for one in worker.local.all:
        if one.runs_to_completion or one.run is None:
            continue
        began = one.run.metadata
        notes = pod["metadata"]["annotations"]
        own = one.name in images({"spec": body["spec"]})
        for base, wanted in (
            (specs.RESTART, asked if own else {}),
            (specs.RESTART_INSTANCE, notes if own else {}),
        ):
            for key in {base, f"{base}.{one.name}"} & wanted.keys():
                if began["annotations"].get(key) != wanted[key]:
                    text = f"P3: {one.name} of {pod['metadata']['name']} did not restart: {key}"
                    raise ViolationError(text)
        reads = one.name == "app" and specs.TIER in body["spec"]["containers"][0].get("env", [])
        if reads and began["labels"].get("tier") != labels.get("tier"):
            raise ViolationError(f"P3: {pod['metadata']['name']} has an older label in its env")


def _runs(world: World, pod: Document, body: Document, *, mirror: bool) -> None:
    name, have = pod["metadata"]["name"], images(pod)
    for image_of, image in images({"spec": body["spec"]}).items():
        wanted = mirrored(image) if mirror else image
        plain = have.get(image_of, "").partition("@")[0]  # has a digest after a restart in place
        if plain not in (wanted, wanted.rpartition(":")[0]):
            raise ViolationError(f"P3: {name} runs {have}, its template says {image}")
    _has_started_with(world, pod, body)
    env = body["spec"]["containers"][0].get("env")
    app = next(item for item in pod["spec"]["containers"] if item["name"] == "app")
    if app.get("env") != env:
        raise ViolationError(f"P3: {name} has env {app.get('env')}, its template says {env}")
    tier = body["metadata"]["labels"].get("tier")
    if pod["metadata"]["labels"].get("tier") != tier:
        raise ViolationError(f"P3: {name} has another label than {tier}")
    if not ready(pod):
        raise ViolationError(f"P3: {name} is not Ready\n{world.dump()}")
    if not is_open(pod):
        raise ViolationError(f"P3: {name} is left out of its Services: {conditions(pod)}")
    for mark in (DRAIN, LOST):
        if note(pod, mark):
            raise ViolationError(f"P3: {name} still has {mark}: {note(pod, mark)}")
