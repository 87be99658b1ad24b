"""Finds the CompositeController that serves a TApp, and the options that its service runs with."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from kubectl_tapp.base.observed import Document
from tapp.words.kinds import PLAIN, Kind
from tapp.words.vocabulary import SHARD

if TYPE_CHECKING:
    from tapp.world import Options

# Metacontroller's finalizer on each TApp that a CompositeController serves: this prefix and the
# name of the CompositeController.
FINALIZER = "metacontroller.io/compositecontroller-"


class Registration(NamedTuple):
    """The CompositeController that serves a TApp, and the options of the service that it calls."""

    controller: Document  # the registered CompositeController, or the manifest of this release
    options: "Options"  # the options of the service, which its operator sets


def controller_for(controllers: Sequence[Document], tapp: Document | None) -> Document | None:
    """Returns the CompositeController that serves a TApp, or None if `controllers` is empty.

    The finalizer that Metacontroller has added to the TApp names the CompositeController. Without
    such a finalizer, the result is the CompositeController that has the same shard label as the
    TApp, or else the first one. `controllers` are all registered CompositeControllers for TApps. If
    `tapp` is None, the result is for TApps without a shard label.
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


def with_components(controller: Document, kinds: Iterable[Kind] = PLAIN) -> Document:
    """Returns a CompositeController with the child resources that optional components add to it.

    The caller passes the manifest of this release if the registered CompositeController cannot be
    read. If the TApp has such children, the components must be installed.

    Args:
        controller: the CompositeController.
        kinds: the kinds of children to add; by default those of all components.
    """
    children = [
        {
            "apiVersion": kind.api_version,
            "resource": kind.resource,
            "updateStrategy": {"method": "InPlace"},
        }
        for kind in kinds
    ]
    spec = controller["spec"]
    return {**controller, "spec": {**spec, "childResources": [*spec["childResources"], *children]}}


def service_of(controller: Document) -> tuple[str, str] | None:
    """Returns the name and namespace of the Service that Metacontroller calls for the sync hook;
    None if the hook's configuration names no Service.

    The Deployment behind the Service has the same name and namespace, if it was installed from the
    manifests of this release.
    """
    webhook = controller["spec"].get("hooks", {}).get("sync", {}).get("webhook", {})
    named = webhook.get("service") or {}
    host = urlsplit(webhook.get("url") or "").hostname or ""
    name, _, rest = host.partition(".")
    found = named.get("name", name), named.get("namespace", rest.partition(".")[0])
    return found if all(found) else None


def service_options(deployment: Document | None) -> "Options":
    """Returns the options that the service runs with, from the environment in its Deployment.

    An option that the environment does not set has its default. If `deployment` is None, all
    options have their defaults. Each option has a variable `TAPP_<NAME>`, which is read as
    `hooks.service.settings` reads it: case does not matter, and booleans may be written in several
    ways.
    """
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - it costs start time

    from tapp.world import Options  # noqa: PLC0415

    containers = [] if deployment is None else deployment["spec"]["template"]["spec"]["containers"]
    variables = [each for one in containers for each in one.get("env") or []]
    written = {str(each["name"]).upper(): str(each.get("value") or "") for each in variables}
    read, values = TypeAdapter(Options).validate_python, dict[str, Any]()
    for option in fields(Options):
        if value := written.get(f"TAPP_{option.name.upper()}", "").strip():
            # With an invalid value the service would not start, so the default is assumed
            with suppress(ValidationError):
                values[option.name] = getattr(read({option.name: value}), option.name)
    return Options(**values)
