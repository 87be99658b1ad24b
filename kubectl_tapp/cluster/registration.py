"""The CompositeController that serves a TApp, the service behind it, its operator's choices."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kubectl_tapp.base.observed import Document
from tapp.words.vocabulary import SHARD

if TYPE_CHECKING:
    from tapp.world import Options

FINALIZER = "metacontroller.io/compositecontroller-"  # Before a controller's name, on its TApps


class Registration(NamedTuple):
    """The registration of the service, and how its operator runs it."""

    controller: Document  # The CompositeController that is registered, or the shipped one
    options: "Options"  # The operator's choices


def in_charge(controllers: Sequence[Document], tapp: Document | None) -> Document | None:
    """The CompositeController of a TApp's finalizer, else of its shard (None: of none), or None."""
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
    child = {"apiVersion": "v1", "resource": "services", "updateStrategy": {"method": "InPlace"}}
    spec = controller["spec"]
    return {**controller, "spec": {**spec, "childResources": [*spec["childResources"], child]}}


def service_of(controller: Document) -> tuple[str, str] | None:
    """Name and namespace of the service and of its shipped Deployment; None if unsaid."""
    webhook = controller["spec"].get("hooks", {}).get("sync", {}).get("webhook", {})
    named = webhook.get("service") or {}
    host = urlsplit(webhook.get("url") or "").hostname or ""
    name, _, rest = host.partition(".")
    found = named.get("name", name), named.get("namespace", rest.partition(".")[0])
    return found if all(found) else None


def chosen(deployment: Document | None) -> "Options":
    """The operator's choices as a Deployment has them; the defaults for what it does not say.

    Each option has a variable, as `hooks.service.settings` reads it: case does not matter, nor how
    a truth is spelled.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - it costs start time

    from tapp.world import Options  # noqa: PLC0415

    containers = [] if deployment is None else deployment["spec"]["template"]["spec"]["containers"]
    variables = [each for one in containers for each in one.get("env") or []]
    written = {str(each["name"]).upper(): str(each.get("value") or "") for each in variables}
    read, values = TypeAdapter(Options).validate_python, dict[str, Any]()
    for option in fields(Options):
        if value := written.get(f"TAPP_{option.name.upper()}", "").strip():
            with suppress(ValidationError):  # no service would start with it
                values[option.name] = getattr(read({option.name: value}), option.name)
    return Options(**values)
