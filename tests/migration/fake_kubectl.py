"""Simulates kubectl and a cluster with old TApps, for the tests of the migration."""

import json
from collections.abc import Sequence
from typing import Any

from migration.kubectl import Finished

Json = dict[str, Any]

NAMESPACE_UID = "ns-uid"
TAPP_UID = "web-uid"
LABELLED = {"controller-uid": TAPP_UID}
OWNED = [{"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "name": "web", "uid": TAPP_UID}]
CONTROLLED = [{**OWNED[0], "controller": True}]
OF_ANOTHER = [{**CONTROLLED[0], "kind": "ReplicaSet", "name": "other", "uid": "other-uid"}]
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "name": "shop", "uid": NAMESPACE_UID}


def thing(name: str, owners: Sequence[Json] = (), labels: Json | None = None, **more: Any) -> Json:
    """Returns an object in the namespace `shop` with these owner references.

    `labels` are added to the label `app: web`, which every object has. `more` has the object's
    fields besides the metadata.
    """
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": f"{name}-uid",
        "resourceVersion": "1",
        "labels": {"app": "web", **(labels or {})},
        "ownerReferences": list(owners),
    }
    return {"metadata": metadata, **more}


def tapp(name: str = "web", replicas: int = 2, **meta: Any) -> Json:
    """Returns a TApp of the old controller; `meta` has further metadata."""
    result = thing(name, spec={"replicas": replicas})
    result["metadata"].update(meta)
    return result


def deployment(ready: int, wanted: int | None = None, namespace: str = "kube-system") -> Json:
    """Returns the old controller's Deployment with `ready` ready replicas.

    `wanted` is `spec.replicas`; None for as many as are ready.
    """
    spec = {"replicas": ready if wanted is None else wanted}
    status = {"readyReplicas": ready} if ready else {}
    result = thing("tapp-controller", spec=spec, status=status)
    result["metadata"]["namespace"] = namespace
    return result


class FakeKubectl:
    """Simulates a cluster behind kubectl's command line.

    Attributes:
        objects: resource -> its objects.
        fail: pairs of a text in a command and kubectl's error; each is used once.
        forbidden: texts in commands that are never allowed.
        patched: resource, name and patch of every successful patch.
        commands: all commands so far.
    """

    def __init__(self, **objects: list[Json]) -> None:
        self.objects: dict[str, list[Json]] = {
            "tapps.apps.tkestack.io": [tapp()],
            "namespaces": [{"metadata": {"name": "shop", "uid": NAMESPACE_UID}}],
        }
        for plural, items in objects.items():
            name = {"tapps": "tapps.apps.tkestack.io", "claims": "persistentvolumeclaims"}
            self.objects[name.get(plural, plural)] = items
        self.fail: list[tuple[str, str]] = []
        self.forbidden: list[str] = []
        self.patched: list[tuple[str, str, Json]] = []
        self.commands: list[list[str]] = []

    def __call__(self, command: Sequence[str]) -> Finished:
        self.commands.append(list(command))
        program, *rest = command
        assert program == "kubectl"
        line = " ".join(rest)
        for text in self.forbidden:
            if text in line:
                return Finished(1, "", "Error from server (Forbidden): no, you may not")
        for failure in self.fail:
            if failure[0] in line:
                self.fail.remove(failure)
                return Finished(1, "", failure[1])
        words = [item for item in rest if not item.startswith("-")]
        flags = dict(item.split("=", 1) for item in rest if item.startswith("--") and "=" in item)
        if words[0] == "get":
            return self._get(words[1], words[2:], flags)
        assert words[0] == "patch"
        assert flags["--type"] == "merge"
        return self._patch(words[1], words[2], json.loads(flags["--patch"]))

    def _get(self, resource: str, names: list[str], flags: dict[str, str]) -> Finished:
        if resource.startswith("compositecontrollers") and resource not in self.objects:
            return Finished(1, "", f'error: the server doesn\'t have a resource type "{resource}"')
        found = self.objects.get(resource, [])
        namespace = flags.get("--namespace")
        if namespace:
            found = [item for item in found if item["metadata"]["namespace"] == namespace]
        if not names:
            return Finished(0, json.dumps({"kind": "List", "items": found}), "")
        for item in found:
            if item["metadata"]["name"] == names[0]:
                return Finished(0, json.dumps(item), "")
        return Finished(1, "", f'Error from server (NotFound): {resource} "{names[0]}" not found')

    def _patch(self, resource: str, name: str, patch: Json) -> Finished:
        found = json.loads(self._get(resource, [name], {}).out or "null")
        if found is None:
            return Finished(1, "", "Error from server (NotFound): gone")
        version = patch["metadata"].get("resourceVersion")
        if version not in (None, found["metadata"]["resourceVersion"]):
            return Finished(1, "", "Error from server (Conflict): the object has been modified")
        self.patched.append((resource, name, patch))
        meta = next(o for o in self.objects[resource] if o["metadata"]["name"] == name)["metadata"]
        meta["labels"].update(patch["metadata"].get("labels", {}))
        meta["ownerReferences"] = patch["metadata"].get("ownerReferences", meta["ownerReferences"])
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        return Finished(0, "", "")


def old_app(**more: list[Json]) -> FakeKubectl:
    """Returns a cluster with a TApp, two pods and two claims of the old controller.

    `more` maps resources to objects that replace these.
    """
    pods = [thing(f"web-{i}", CONTROLLED) for i in range(2)]
    claims = [thing(f"data-web-{i}", CONTROLLED) for i in range(2)]
    return FakeKubectl(**{"pods": pods, "claims": claims, **more})
