"""The service behind the registration, and the choices of its operator."""

from typing import Any
from urllib.parse import urlsplit

from kubectl_tapp.base.observed import Document
from tapp.world import Options

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


def chosen(deployment: Document | None) -> Options:
    """The operator's choices as a Deployment has them; the defaults for what it does not say."""
    if deployment is None:
        return Options()
    containers = deployment["spec"]["template"]["spec"]["containers"]
    written = {each["name"]: each.get("value") for each in containers[0].get("env") or []}
    values: dict[str, Any] = {}
    for variable, (name, kind) in _SETTINGS.items():
        value = (written.get(variable) or "").strip()
        if kind == _FLAG and value:
            values[name] = value.lower() in _TRUE
        elif value.isdecimal():
            values[name] = int(value)
    return Options(**values)
