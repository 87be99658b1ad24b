"""The differences between a TApp and its edited version: in templates, and in other fields."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from kubectl_tapp.base.arguments import template_users
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.shapes import template_shape_error
from kubectl_tapp.forecast.forecast import TemplateChange
from tapp.declared.claims_and_service import claim_templates
from tapp.declared.differences import changed, differences, value_at, written
from tapp.declared.lookup import Templates, resolve_templates
from tapp.declared.model import TAppSpec
from tapp.kube.canonical import comparable, nano

_OF_TEMPLATES = ("template", "templatePool")


def read_spec(tapp: Document) -> TAppSpec | None:
    """Returns the spec of a TApp as the service parses it; None if the spec is invalid."""
    try:
        return TAppSpec.model_validate(tapp.get("spec") or {})
    except ValidationError:
        return None


def template_bodies(tapp: Document) -> dict[str, Document]:
    """Returns template name -> content, for all well-formed templates of the spec.

    The result is empty if the spec is invalid.
    """
    spec = read_spec(tapp)
    if spec is None:
        return {}
    names = dict.fromkeys([spec.default_name, "default", *spec.template_pool])
    found = {name: spec.find_template(name) for name in names}
    return {
        name: body
        for name, body in found.items()
        if body is not None and not template_shape_error("", body)
    }


def templates_of(tapp: Document) -> Templates | None:
    """Returns an object that fills the placeholders of the TApp's templates for each instance; None
    if the spec is invalid.
    """
    spec, meta = read_spec(tapp), tapp["metadata"]
    return (
        None if spec is None else resolve_templates(spec, meta["name"], meta.get("namespace") or "")
    )


def template_changes(observed: Observed, edited: Document) -> tuple[TemplateChange, ...]:
    """Returns the templates that the edit adds, removes or changes, sorted by name.

    `observed` has the TApp before the edit. If that TApp has no uid, it does not exist yet, and all
    templates count as added.
    """
    exists = bool(observed.tapp["metadata"].get("uid"))
    before = template_bodies(observed.tapp) if exists else {}
    after = template_bodies(edited)
    spec = read_spec(edited)
    users = {} if spec is None else template_users(spec)
    ignores = spec is not None and spec.ignores_resources
    resizes = spec is not None and spec.resizes
    found = []
    for name in sorted({*before, *after}):
        old, new, ids = before.get(name), after.get(name), tuple(users.get(name, ()))
        if old is None or new is None:
            found.append(TemplateChange(name, "removed" if new is None else "added", (), ids))
        elif lines := tuple(differences(old, new, ignores_resources=ignores, resizes=resizes)):
            found.append(TemplateChange(name, "changed", lines, ids))
    return tuple(found)


def other_fields(before: Document, after: Document) -> tuple[tuple[str, Any, Any], ...]:
    """Returns the fields outside the templates that the edit changes: path, old and new value.

    If `before` has no uid, the TApp does not exist yet, and all fields count as new.
    """
    exists = bool(before["metadata"].get("uid"))
    old, new = (_without_templates(tapp.get("spec")) for tapp in (before, after))
    if not exists:
        old = {}
    return tuple(
        (written(("spec", *path)), value_at(old, path), value_at(new, path))
        for path in changed(old, new)
    )


def _without_templates(spec: Any) -> Document:
    if not isinstance(spec, dict):
        return {}
    return {key: value for key, value in spec.items() if key not in _OF_TEMPLATES}


def unaffected_children(before: Document, after: Document) -> tuple[str, ...]:
    """Returns sentences about changes of the spec that do not affect existing pods or claims.

    Larger claims are left out, because the service's decisions report them. The result is empty if
    `before` has no uid, because then the TApp has no pods and claims yet.
    """
    old, new = read_spec(before), read_spec(after)
    if not before["metadata"].get("uid") or old is None or new is None:
        return ()
    kept = new.update_strategy.partition not in {0, "0%"}
    return (
        *_service_sentences(old.service_name, new.service_name, kept),
        *_claim_sentences(
            claim_templates(old), claim_templates(new), kept, tapp_command(before, "restart")
        ),
    )


_KEPT_INSTANCES = "; instances that the partition keeps also keep"


def _service_sentences(old: str, new: str, kept: bool) -> Iterator[str]:
    if old != new:
        more = f"{_KEPT_INSTANCES} the old name after a replacement" if kept else ""
        yield f"spec.serviceName changes: existing pods keep their host names{more}"


def _claim_sentences(
    old: dict[str, Document], new: dict[str, Document], kept: bool, restart: str
) -> Iterator[str]:
    for name in sorted(new.keys() - old.keys()):
        yield (
            f"claim template {name!r} is new: the volumes of a pod cannot change, so each instance "
            f"gets its claim with its next pod ({restart} replaces the pods)"
        )
    for name in sorted(old.keys() - new.keys()):
        more = f"{_KEPT_INSTANCES} their claim after a replacement" if kept else ""
        yield (
            f"claim template {name!r} is removed: its claims stay, and existing pods use them "
            f"until they are replaced{more}"
        )
    for name in sorted(old.keys() & new.keys()):
        before, after = (comparable(each[name]["spec"]) for each in (old, new))
        sizes = [_storage(each[name]) for each in (old, new)]
        if None not in sizes and (nano(str(sizes[1])) or 0) < (nano(str(sizes[0])) or 0):
            yield (
                f"claim template {name!r} requests {sizes[1]} instead of {sizes[0]}: claims cannot "
                f"shrink, so existing claims keep their size, and new claims get {sizes[1]}"
            )
        fixed = sorted(
            key
            for key in (before.keys() | after.keys()) - {"resources"}
            if before.get(key) != after.get(key)
        )
        if fixed:
            yield (
                f"claim template {name!r} changes {', '.join(fixed)}: existing claims stay as they "
                "are, and new claims get the change"
            )


def _storage(template: Document) -> str | None:
    size = template["spec"]
    for key in ("resources", "requests", "storage"):
        size = size.get(key) if isinstance(size, dict) else None
    return str(size) if isinstance(size, str | int | float) and nano(str(size)) else None
