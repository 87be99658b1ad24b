"""The records of the judge: snapshots of syncs, and instances that updates made unavailable."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simulator.api.apply import LAST_APPLIED
from simulator.metacontroller.hook_calls import HookCall
from tests.holds import HELD, TOLD
from tests.kept import kept_in, kept_template
from tests.model.specs import RESTART_INSTANCE
from tests.reading import (
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

Document = dict[str, Any]


@dataclass
class Snapshot:
    """The request of one sync and its response."""

    request: Document
    time: float
    spec: Document
    running: set[int]
    available: set[int]
    """Instances that the snapshot shows as available."""
    taken: set[int]
    """Instances that serve, and that the snapshot shows as available or on a silent node."""
    pods_are_older: bool
    pods: dict[str, Document]
    call: HookCall

    @cached_property
    def status(self) -> Document:
        """The status in the response of the sync."""
        found: Document = self.call.response.get("status") or {}
        return found

    @cached_property
    def kept(self) -> set[int]:
        """Instances that the response keeps at an older revision."""
        newest = self.status.get("updateRevision")
        return {id for id, revision in kept_in(self.status).items() if revision != newest}

    def template(self, id: int) -> Document | None:
        """Returns the template of an instance, or for a kept instance that of its revision."""
        return kept_template(self.request, self.status, id)

    @property
    def generation(self) -> int:
        return int(self.request["parent"]["metadata"]["generation"])

    @property
    def parent_version(self) -> int:
        return int(self.request["parent"]["metadata"]["resourceVersion"])

    def group(self, id: int) -> bool:
        """Returns True if the instance is in the rolling group."""
        return template_name(self.spec, id) == rolling_name(self.spec)

    def budget(self, *, rolling: bool) -> int:
        strategy = self.spec.get("updateStrategy") or {}
        force = (strategy.get("forceUpdate") or {}).get("maxUnavailable", "100%")
        value = strategy.get("maxUnavailable", 1) if rolling else force
        return resolved(value, len(self.running)) or 0


@dataclass
class Outage:
    """An instance that an update has made unavailable."""

    snapshot: Snapshot
    uid: str
    revision: int
    was_available: bool
    began: float
    recorded: int = 0
    """The resourceVersion of the status that was written after the update."""
    is_resize: bool = False
    """True if the outage lasts until the kubelet has done a resize, even if the instance serves."""

    def is_seen_by(self, snapshot: Snapshot, name: str) -> bool:
        pod = snapshot.pods.get(name)
        if pod is None or pod["metadata"]["uid"] != self.uid:
            return True
        return int(pod["metadata"]["resourceVersion"]) >= self.revision


def two_tags(pod: Document) -> bool:
    """Returns True if a pod was updated before its first container ran.

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
    """Returns the uid and the revision label of a pod."""
    labels = pod["metadata"]["labels"]
    return f"{pod['metadata']['uid']} {labels.get('tapp_template_hash_key')}"


def spoken(pod: Document) -> Document:
    """Returns the parts of a pod that a template sets, without markers."""
    notes = dict(pod["metadata"].get("annotations") or {})
    labels, spec = dict(pod["metadata"].get("labels") or {}), dict(pod["spec"])
    for key in (LAST_APPLIED, DRAIN, LOST, RECORD, *TOLD, *(key for key, _ in requests(pod))):
        notes.pop(key, None)
    for key in (POD_STATUS, HELD):
        labels.pop(key, None)
    spec.pop("tolerations", None)
    return {"labels": labels, "notes": notes, "spec": spec}


def requests(pod: Document) -> set[tuple[str, str]]:
    """Returns the requests of users in a pod's annotations."""
    notes = pod["metadata"].get("annotations") or {}
    return {(key, text) for key, text in notes.items() if key.startswith(RESTART_INSTANCE)}


def body_of(body: Document, spec: Document) -> str:
    """Returns a template as text, without resources if they are ignored."""
    return json.dumps(_without_resources(body) if _ignores(spec) else body, sort_keys=True)


def resources_mode(spec: Document) -> str | None:
    """Returns how the TApp handles changed resources: `Ignore`, `InPlace`, or None."""
    strategy = (spec.get("updateStrategy") or {}).get("inPlaceUpdateStrategy") or {}
    found: str | None = strategy.get("resources")
    return found


def _ignores(spec: Document) -> bool:
    return resources_mode(spec) == "Ignore"


def containers(spec: Document) -> dict[str, Document]:
    """Returns the containers and native sidecars by name, whose resources may change."""
    sidecars = [
        one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"
    ]
    return {one["name"]: one for one in (*spec["containers"], *sidecars)}


def asked_for(container: Document) -> Document:
    """Returns the resources of a container; a missing request is its limit."""
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
    """Returns True if a template differs only in resources, and the pod need not restart for them.

    `made_of` is the template that the pod was created from, `body` is the current one. The pod need
    not restart if resources are ignored, or if it already has the new ones. If the pod was created
    while resources counted, only a recorded revision can show this.
    """
    if not resources_only(made_of, body):
        return False
    others = lacks_resources(pod, body)
    return (_ignores(snapshot.spec) or not others) and is_recorded(pod, snapshot)


def lacks_resources(pod: Document, body: Document) -> bool:
    """Returns True if a pod has other resources than a template."""
    asked, given = (containers(one["spec"]) for one in (body, pod))
    return any(
        name in given and asked_for(each) != asked_for(given[name]) for name, each in asked.items()
    )


def is_infeasible(pod: Document) -> bool:
    """Returns True if the kubelet reports that it can never resize the pod."""
    found = conditions(pod).get("PodResizePending", {})
    return found.get("reason") == "Infeasible"


def resources_only(made_of: str, body: Document) -> bool:
    """Returns True if two templates differ only in resources.

    `made_of` is the template that the pod was created from.
    """
    bare, same = (_without_resources(each) for each in (json.loads(made_of), body))
    return bare == same


def is_recorded(pod: Document, snapshot: Snapshot) -> bool:
    """Returns True if the history in the sync's request contains the pod's revision."""
    label = pod["metadata"]["labels"]["tapp_template_hash_key"]
    records = snapshot.request["children"].get("ControllerRevision.apps/v1") or {}
    return any(
        record["metadata"]["labels"]["tapp_template_hash_key"] == label
        for record in records.values()
    )
