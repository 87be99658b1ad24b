"""Defines the records of the judge: the snapshot of a sync, and the outage that an update has
caused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simulator.api.apply import LAST_APPLIED
from simulator.metacontroller.hook_calls import HookCall
from tests.holds import AUTOSCALERS, HELD, TOLD
from tests.hook_calls import (
    DRAIN,
    LOST,
    POD_STATUS,
    RECORD,
    conditions,
    images,
    phase,
    ready,
    resolved,
    rolling_name,
    template_name,
)
from tests.kept_instances import kept_in, kept_template
from tests.model.specs import RESTART_INSTANCE

Document = dict[str, Any]


@dataclass
class Snapshot:
    """The request and the response of one sync: the knowledge on which it decided, and its
    decisions.

    Attributes:
        request: the request of the sync.
        time: the time of the request on the simulated clock, in seconds.
        spec: the TApp's spec in the request.
        running: the numbers of the instances that should run.
        pods_are_older: True if the pods of the request are older than its TApp.
        pods: the pods of the request, by name.
        call: the call of the hook.
    """

    request: Document
    time: float
    spec: Document
    running: set[int]
    available: set[int]
    """Instances that the request shows as available."""
    taken: set[int]
    """Instances that serve, and that the request shows as available or on a silent node."""
    pods_are_older: bool
    pods: dict[str, Document]
    call: HookCall

    @cached_property
    def status(self) -> Document:
        """The TApp's status in the response of the sync."""
        found: Document = self.call.response.get("status") or {}
        return found

    @cached_property
    def kept(self) -> set[int]:
        """Numbers of the instances that the response keeps at an older revision."""
        newest = self.status.get("updateRevision")
        return {id for id, revision in kept_in(self.status).items() if revision != newest}

    def template(self, id: int) -> Document | None:
        """Returns the template that an instance has to run; for a kept instance, the one of its
        revision.

        Returns None if the template or the revision does not exist.
        """
        return kept_template(self.request, self.status, id)

    @property
    def generation(self) -> int:
        return int(self.request["parent"]["metadata"]["generation"])

    @property
    def parent_version(self) -> int:
        return int(self.request["parent"]["metadata"]["resourceVersion"])

    def group(self, id: int) -> bool:
        """Returns True if the instance is in the rolling group, and False if it is in the force
        group.
        """
        return template_name(self.spec, id) == rolling_name(self.spec)

    def budget(self, *, rolling: bool) -> int:
        strategy = self.spec.get("updateStrategy") or {}
        force = (strategy.get("forceUpdate") or {}).get("maxUnavailable", "100%")
        value = strategy.get("maxUnavailable", 1) if rolling else force
        return resolved(value, len(self.running)) or 0


@dataclass
class Outage:
    """The time in which an instance does not serve because of an update.

    Attributes:
        snapshot: the sync that has decided on the update.
        uid: the uid of the pod that was updated.
        revision: the resourceVersion of the update.
        was_available: True if the instance served before the update.
        began: the time of the update on the simulated clock, in seconds.
    """

    snapshot: Snapshot
    uid: str
    revision: int
    was_available: bool
    began: float
    recorded: int = 0
    """The resourceVersion of the TApp's status that was written after the update; 0 if none was
    written yet.
    """
    is_resize: bool = False
    """True for a resize: the outage lasts until the kubelet has done the resize, even if the
    instance serves.
    """

    def is_seen_by(self, snapshot: Snapshot, name: str) -> bool:
        pod = snapshot.pods.get(name)
        if pod is None or pod["metadata"]["uid"] != self.uid:
            return True
        return int(pod["metadata"]["resourceVersion"]) >= self.revision


def two_tags(pod: Document) -> bool:
    """Returns True if the service has updated the pod before the pod's first container ran.

    The status may then have the wanted image name although another tag was started.
    """
    text = (pod["metadata"].get("annotations") or {}).get(RECORD)
    recorded = json.loads(text)["containers"] if text else {}
    return any(
        not recorded.get(item["name"], {"id": "?"}).get("id") and not item["lastState"]
        for item in pod["status"].get("containerStatuses") or []
    )


def brief(pod: Document | None) -> str:
    if pod is None:
        return "no pod"
    meta = pod["metadata"]
    going = " terminating" if meta.get("deletionTimestamp") else ""
    fit = "Ready" if ready(pod) else "not Ready"
    status = [
        (item["image"], *item["state"]) for item in pod["status"].get("containerStatuses", [])
    ]
    return f"rv {meta['resourceVersion']} {phase(pod)} {fit}{going} {images(pod)} {status}"


def identity(pod: Document) -> str:
    """Returns the uid and the revision label of a pod as one text."""
    labels = pod["metadata"]["labels"]
    return f"{pod['metadata']['uid']} {labels.get('tapp_template_hash_key')}"


def spoken(pod: Document) -> Document:
    """Returns the parts of a pod that its template sets, without the service's markers and
    notes.
    """
    notes = dict(pod["metadata"].get("annotations") or {})
    labels, spec = dict(pod["metadata"].get("labels") or {}), dict(pod["spec"])
    ours = (LAST_APPLIED, DRAIN, LOST, RECORD, *TOLD, *AUTOSCALERS)
    for key in (*ours, *(key for key, _ in requests(pod))):
        notes.pop(key, None)
    for key in (POD_STATUS, HELD):
        labels.pop(key, None)
    spec.pop("tolerations", None)
    return {"labels": labels, "notes": notes, "spec": spec}


def requests(pod: Document) -> set[tuple[str, str]]:
    """Returns the restarts that users have requested in a pod's annotations, as pairs of key and
    value.
    """
    notes = pod["metadata"].get("annotations") or {}
    return {(key, text) for key, text in notes.items() if key.startswith(RESTART_INSTANCE)}


def body_of(body: Document, spec: Document) -> str:
    """Returns a template as text, so that equal templates have equal texts.

    The resources of containers are left out if the spec ignores them.
    """
    return json.dumps(_without_resources(body) if _ignores(spec) else body, sort_keys=True)


def resources_mode(spec: Document) -> str | None:
    """Returns how a TApp handles changed resources: `Ignore`, `InPlace`, or None if the field is
    not set.
    """
    strategy = (spec.get("updateStrategy") or {}).get("inPlaceUpdateStrategy") or {}
    found: str | None = strategy.get("resources")
    return found


def _ignores(spec: Document) -> bool:
    return resources_mode(spec) == "Ignore"


def containers(spec: Document) -> dict[str, Document]:
    """Returns name -> container for the containers and native sidecars of a pod spec.

    Other init containers are left out, because nobody can change their resources.
    """
    sidecars = [
        one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"
    ]
    return {one["name"]: one for one in (*spec["containers"], *sidecars)}


def asked_for(container: Document) -> Document:
    """Returns the resources of a container, where a missing request has the value of its limit."""
    found = container.get("resources") or {}
    requests = {**(found.get("limits") or {}), **(found.get("requests") or {})}
    return {**found, "requests": requests} if requests else {}


def _without_resources(body: Document) -> Document:
    spec = dict(body["spec"])
    for section in ("containers", "initContainers"):
        if section in spec:
            spec[section] = [
                {key: part for key, part in one.items() if key != "resources"}
                for one in spec[section]
            ]
    return {**body, "spec": spec}


def no_cause_to_restart(made_of: str, pod: Document, body: Document, snapshot: Snapshot) -> bool:
    """Returns True if the new template differs only in resources and the pod need not restart for
    them.

    The pod need not restart if resources are ignored, or if it already has the new ones. If the pod
    was created while resources counted, only a recorded revision can show this.

    Args:
        made_of: the template that the pod was created from, as text.
        pod: the pod.
        body: the current template.
        snapshot: the sync that has decided on the change.
    """
    if not resources_only(made_of, body):
        return False
    others = lacks_resources(pod, body)
    return (_ignores(snapshot.spec) or not others) and is_recorded(pod, snapshot)


def lacks_resources(pod: Document, body: Document) -> bool:
    """Returns True if a container of the pod has other resources than in the template `body`."""
    asked, given = (containers(one["spec"]) for one in (body, pod))
    return any(
        name in given and asked_for(each) != asked_for(given[name]) for name, each in asked.items()
    )


def is_infeasible(pod: Document) -> bool:
    """Returns True if the kubelet reports that the pod's resize is infeasible on its node."""
    found = conditions(pod).get("PodResizePending", {})
    return found.get("reason") == "Infeasible"


def resources_only(made_of: str, body: Document) -> bool:
    """Returns True if two templates are equal except for the resources of containers.

    `made_of` is the template that the pod was created from, as text; `body` is the current one.
    """
    bare, same = (_without_resources(each) for each in (json.loads(made_of), body))
    return bare == same


def is_recorded(pod: Document, snapshot: Snapshot) -> bool:
    """Returns True if the request of the sync contains a ControllerRevision with the pod's
    revision.
    """
    label = pod["metadata"]["labels"]["tapp_template_hash_key"]
    records = snapshot.request["children"].get("ControllerRevision.apps/v1") or {}
    return any(
        record["metadata"]["labels"]["tapp_template_hash_key"] == label
        for record in records.values()
    )
