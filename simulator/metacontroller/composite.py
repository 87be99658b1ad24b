"""Parses a CompositeController manifest: parent and child resources, hooks, update strategies.

`read` is the entry point. Rolling update strategies and selectors that are not generated raise
ValueError, because the simulator does not model them. Source: Metacontroller 4.17.2,
pkg/apis/metacontroller/v1alpha1.
"""

import re
from dataclasses import dataclass, field

from simulator.objects.objects import Object, finalizers_of, labels_of, name_of, selector_matches

METHODS = ("OnDelete", "InPlace", "Recreate")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DEFAULT_RESYNC_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a controller manifest.

    Attributes:
        url: the URL that Metacontroller calls.
        version: the version of the hook protocol, v1 or v2.
        timeout_seconds: seconds after which the call fails.
        strict: True if a response with unknown keys is refused.
    """

    url: str
    version: str = "v1"
    timeout_seconds: float = 10.0
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ChildResource:
    """One kind of children in a CompositeController, and the method of its update strategy."""

    api_version: str
    plural: str
    method: str = "OnDelete"


@dataclass(frozen=True, slots=True)
class Composite:
    """The content of one CompositeController manifest, decoded.

    Attributes:
        manifest: the manifest as given; hook requests contain it.
        children: the kinds of children.
        sync, finalize, customize: the hooks; None if the manifest does not have the hook.
        ignore_status_changes: True if a change of the parent's status starts no sync.
        resync_seconds: seconds between two syncs of an unchanged parent.
        parent_selector: the label selector for parents; None selects all parents.
    """

    manifest: Object
    name: str
    parent_api_version: str
    parent_plural: str
    children: tuple[ChildResource, ...]
    sync: Hook | None
    finalize: Hook | None
    customize: Hook | None
    ignore_status_changes: bool = False
    resync_seconds: float = _DEFAULT_RESYNC_SECONDS
    parent_selector: Object | None = field(default=None)

    @property
    def finalizer(self) -> str:
        """The name of the finalizer that parents get if the controller has a finalize hook."""
        return f"metacontroller.io/compositecontroller-{self.name}"

    def matches(self, parent: Object) -> bool:
        """Returns True if the controller's label selector matches the parent."""
        return selector_matches(self.parent_selector, labels_of(parent))

    def is_responsible_for(self, parent: Object) -> bool:
        """Returns True if the controller has to sync the parent.

        That is so in two cases:

        - The label selector of the controller matches the parent.
        - The parent has the controller's finalizer, which the controller then has to remove.
        """
        return self.finalizer in finalizers_of(parent) or self.matches(parent)


def duration_seconds(text: str) -> float:
    """Parses a Go duration such as `1m30s` and returns the seconds."""
    return sum(float(number) * _UNITS[unit] for number, unit in _DURATION.findall(text))


def read_hook(hooks: Object, name: str) -> Hook | None:
    """Returns one hook of a controller, or None if the controller does not have the hook.

    `hooks` is the `spec.hooks` of the manifest, and `name` is a key in it, such as `sync`.
    """
    hook = hooks.get(name)
    if not hook or not hook.get("webhook"):
        return None
    webhook, version = hook["webhook"], hook.get("version", "v1")
    url = webhook.get("url")
    if not url:
        service = webhook["service"]
        protocol, port = service.get("protocol", "http"), service.get("port", 80)
        host = f"{service['name']}.{service['namespace']}:{port}"
        url = f"{protocol}://{host}{webhook['path']}"
    mode = webhook.get("responseUnMarshallMode", "strict" if version == "v2" else "loose")
    timeout = duration_seconds(webhook["timeout"]) if webhook.get("timeout") else 0.0
    return Hook(url, version, timeout or 10.0, strict=mode == "strict")


def resync_seconds_of(spec: Object) -> float:
    """Returns the seconds between two syncs of an unchanged parent, from the spec of a controller.

    The value of `resyncPeriodSeconds` is raised to 1 if it is smaller. The default is 1800.
    """
    given = spec.get("resyncPeriodSeconds")
    return _DEFAULT_RESYNC_SECONDS if given is None else max(float(given), 1.0)


def read(manifest: Object) -> Composite:
    """Parses a CompositeController manifest and returns its content.

    Raises ValueError if the manifest needs a feature that the simulator does not model.
    """
    spec = manifest["spec"]
    parent, hooks = spec["parentResource"], spec.get("hooks") or {}
    if not spec.get("generateSelector"):
        raise ValueError("selectors that are not generated are not modelled")
    children = []
    for child in spec.get("childResources") or []:
        method = (child.get("updateStrategy") or {}).get("method") or "OnDelete"
        if method not in METHODS:
            raise ValueError(f"update strategy {method} is not modelled")
        children.append(ChildResource(child["apiVersion"], child["resource"], method))
    return Composite(
        manifest=manifest,
        name=name_of(manifest),
        parent_api_version=parent["apiVersion"],
        parent_plural=parent["resource"],
        children=tuple(children),
        sync=read_hook(hooks, "sync"),
        finalize=read_hook(hooks, "finalize"),
        customize=read_hook(hooks, "customize"),
        ignore_status_changes=bool(parent.get("ignoreStatusChanges")),
        resync_seconds=resync_seconds_of(spec),
        parent_selector=parent.get("labelSelector"),
    )
