"""Which CompositeController serves a TApp, the service behind it, and its operator's choices."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kubectl_tapp.base.observed import Document
from tapp.words.digits import whole
from tapp.words.vocabulary import SHARD

if TYPE_CHECKING:
    from tapp.world import Options

FINALIZER = "metacontroller.io/compositecontroller-"
"""What Metacontroller puts before a CompositeController's name, on each TApp that it serves."""
_FLAG, _NUMBER = "flag", "number"
_SETTINGS = {
    "TAPP_DELETE_POD_AFTER_APP_FINISH": ("delete_pod_after_app_finish", _FLAG),
    "TAPP_TOLERATION_SECONDS": ("toleration_seconds", _NUMBER),
    "TAPP_LOST_NODE_SECONDS": ("lost_node_seconds", _NUMBER),
    "TAPP_MAX_NEW_PODS_BYTES": ("max_new_pods_bytes", _NUMBER),
    "TAPP_RESIZE": ("resize", _FLAG),
}
"""The variables of `hooks.service.settings` that decisions depend on."""
_TRUE = ("true", "1", "yes", "on", "t", "y")


class Registration(NamedTuple):
    """The registration of the service, and how its operator runs it."""

    controller: Document
    """The CompositeController that is registered, or the shipped one."""
    options: "Options"
    """The operator's choices."""


def in_charge(controllers: Sequence[Document], tapp: Document | None) -> Document | None:
    """The CompositeController of a TApp: that of its finalizer, else of its shard; None if none is.

    Args:
        controllers: those of TApps, one for each shard.
        tapp: as it is stored; without it a TApp of no shard is meant.
    """
    metadata = (tapp or {}).get("metadata", {})
    names = {each["metadata"]["name"]: each for each in controllers}
    for finalizer in metadata.get("finalizers") or []:
        if finalizer.startswith(FINALIZER) and finalizer.removeprefix(FINALIZER) in names:
            return names[finalizer.removeprefix(FINALIZER)]
    shard = (metadata.get("labels") or {}).get(SHARD)
    own = [
        each for each in controllers if (each["metadata"].get("labels") or {}).get(SHARD) == shard
    ]
    return next(iter(own or controllers), None)


def with_services(controller: Document) -> Document:
    """The shipped one where the TApp has Services: the component is there, if nobody sees it."""
    child = {
        "apiVersion": "v1",
        "resource": "services",
        "updateStrategy": {"method": "InPlace"},
    }
    spec = controller["spec"]
    return {**controller, "spec": {**spec, "childResources": [*spec["childResources"], child]}}


def service_of(controller: Document) -> tuple[str, str] | None:
    """Name and namespace of the service that a CompositeController calls, None if it says neither.

    Its Deployment has the same name in the shipped manifests.
    """
    webhook = controller["spec"].get("hooks", {}).get("sync", {}).get("webhook", {})
    named = webhook.get("service") or {}
    host = urlsplit(webhook.get("url") or "").hostname or ""
    name, _, rest = host.partition(".")
    found = named.get("name", name), named.get("namespace", rest.partition(".")[0])
    return found if all(found) else None


def chosen(deployment: Document | None) -> "Options":
    """The operator's choices as a Deployment has them; the defaults for what it does not say."""
    from tapp.world import Options  # noqa: PLC0415 - it costs start time

    if deployment is None:
        return Options()
    containers = deployment["spec"]["template"]["spec"]["containers"]
    written = {each["name"]: each.get("value") for each in containers[0].get("env") or []}
    values: dict[str, Any] = {}
    for variable, (name, kind) in _SETTINGS.items():
        value = (written.get(variable) or "").strip()
        if kind == _FLAG and value:
            values[name] = value.lower() in _TRUE
        elif (number := whole(value, 18)) is not None:
            values[name] = number
    return Options(**values)
