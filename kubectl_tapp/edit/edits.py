"""The edits that the verbs make: pure functions from a TApp document to the edited document.

No document is modified, and unchanged parts are shared. The edits change only `spec` and, for the
cause of a change, one annotation. `tapp.declared.model` decides which template a name stands for.
"""

import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

import jsonpatch
from pydantic import ValidationError

from kubectl_tapp.base.arguments import name_suggestion, template_names, template_users
from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.shapes import template_shape_error
from tapp.declared.model import TAppSpec
from tapp.declared.placeholders import placeholders_in
from tapp.declared.templates import running
from tapp.words.vocabulary import DEFAULT_TEMPLATE, RESTARTED_AT, RETRY, InstanceStatus

CHANGE_CAUSE = "kubernetes.io/change-cause"  # The annotation that `kubectl rollout history` shows
Operation = dict[str, Any]


def spec_of(tapp: Document) -> TAppSpec:
    """Returns the spec of a TApp as the service parses it, with all defaults.

    Raises CommandError with the first mistake if the spec is invalid.
    """
    try:
        return TAppSpec.model_validate(tapp.get("spec") or {})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(place) for place in first["loc"])
        raise CommandError(f"spec.{path} is invalid: {first['msg']}") from None


def used_templates(spec: TAppSpec) -> list[str]:
    """Returns the sorted names of the templates that at least one instance runs and that the spec
    has.
    """
    return sorted(name for name in template_users(spec) if spec.find_template(name))


def killed(tapp: Document, ids: Iterable[int]) -> Document:
    """Returns the TApp with these instances stopped.

    The service then deletes the pods of these instances and keeps their claims.
    """
    wanted = dict.fromkeys(map(str, ids), str(InstanceStatus.KILLED))
    return with_entries(tapp, "statuses", wanted)


def started(tapp: Document, ids: Iterable[int]) -> Document:
    """Returns the TApp with these instances started again, by removing their entries in
    spec.statuses.
    """
    return with_entries(tapp, "statuses", dict.fromkeys(map(str, ids)))


def with_entries(tapp: Document, field: str, wanted: Mapping[str, str | None]) -> Document:
    """Returns the TApp with changed entries in the map `field` of its spec.

    `wanted` maps keys to new values; the value None removes an entry. All entries are set in one
    copy of the map, because a copy for each of thousands of instances would take minutes.
    """
    before: Document = (tapp.get("spec") or {}).get(field) or {}
    kept = {key: value for key, value in before.items() if wanted.get(key, value) is not None}
    after = kept | {key: value for key, value in wanted.items() if value is not None}
    return tapp if after == before else put(tapp, ("spec", field), after)


def with_values(
    tapp: Document, ids: Iterable[int] | None, wanted: Mapping[str, str | None]
) -> Document:
    """Returns the TApp with changed values of instances, which fill the placeholders of their
    templates.

    `wanted` maps keys to values; the value None removes a key. If `ids` is None, the values become
    defaults for instances without a value of their own.
    """
    spec: Document = tapp.get("spec") or {}
    if ids is None:
        return with_entries(tapp, "defaultValues", wanted)
    before: Document = spec.get("values") or {}
    after = dict(before)
    for id in map(str, ids):
        own = {**(before.get(id) or {}), **wanted}
        after[id] = {key: value for key, value in own.items() if value is not None}
        if not after[id]:
            del after[id]
    return tapp if after == before else put(tapp, ("spec", "values"), after)


def with_assigned_template(tapp: Document, template: str, ids: Iterable[int]) -> Document:
    """Returns the TApp whose instances `ids` run a template.

    For the default template the entries of the instances are removed from spec.templates. Raises
    UsageError if the template does not exist.
    """
    spec = spec_of(tapp)
    template_content(spec, template)
    entry = None if template == spec.default_name else template
    return with_entries(tapp, "templates", dict.fromkeys(map(str, ids), entry))


def with_images(tapp: Document, images: Mapping[str, str], template: str | None = None) -> Document:
    """Returns the TApp with other images of containers in one template.

    `images` maps container names to images. The name `*` stands for all containers without an entry
    of their own. If `template` is None, the default template is changed. Raises UsageError if the
    template or a container does not exist, or if the template is malformed.
    """
    spec = spec_of(tapp)
    name = spec.default_name if template is None else template
    body = dict(template_content(spec, name))
    if wrong := template_shape_error(f"template {name!r}", body):
        raise UsageError(wrong)
    pod: Document = dict(body.get("spec") or {})
    known: set[str] = set()
    for section in ("containers", "initContainers"):
        items = pod.get(section) or []
        known.update(item["name"] for item in items if item.get("name"))
        if items:
            pod[section] = [_with_image(item, images) for item in items]
    for container in images:
        if container != ALL_CONTAINERS and container not in known:
            message = f"template {name!r} has no container {container!r}"
            raise UsageError(message + name_suggestion(container, known))
    return put(tapp, template_path(spec, name), body | {"spec": pod})


ALL_CONTAINERS = "*"


def _with_image(container: Document, images: Mapping[str, str]) -> Document:
    image = images.get(container.get("name", ""), images.get(ALL_CONTAINERS))
    return container if image is None else container | {"image": image}


def with_copied_template(tapp: Document, template: str, name: str) -> Document:
    """Returns the TApp with a copy of a template in the pool, under the name `name`.

    Raises UsageError if the template does not exist, or if the name is invalid or in use.
    """
    spec = spec_of(tapp)
    body = template_content(spec, template)
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--copy-as {name!r} is not a valid template name: use at most 63 letters, digits, "
            "'-', '_' and '.', the first and the last a letter or a digit"
        )
    if name in (template, *template_users(spec), spec.rolling_name, DEFAULT_TEMPLATE):
        promote, abort = (
            tapp_command(tapp, verb, "--template", name) for verb in ("promote", "abort")
        )
        raise UsageError(
            f"template {name!r} is in use: {promote} or {abort} ends that "
            "canary, --copy-as gives this one another name"
        )
    return put(tapp, ("spec", "templatePool", name), body)


_NAME = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
"""A valid name of a copied template, which users can type easily. The API server would accept any
text as a key of the pool.
"""


def running_containers(spec: TAppSpec, template: str) -> set[str]:
    """Returns the names of a template's containers that keep running while the pod runs.

    Init containers that are no sidecars are left out. Raises UsageError if the template does not
    exist or is malformed.
    """
    body = template_content(spec, template)
    if wrong := template_shape_error(f"template {template!r}", body):
        raise UsageError(wrong)
    return {item["name"] for item in running(body.get("spec") or {})}


def restarted(
    tapp: Document, templates: Iterable[str], at: str, key: str = RESTARTED_AT
) -> Document:
    """Returns the TApp with an annotation in each of these templates, which restarts their
    instances.

    `key` is the annotation, and `at` is its value, a timestamp. The default annotation is that of
    `kubectl rollout restart`; it lets the service replace the pods. Raises UsageError if a template
    does not exist.
    """
    for name in templates:
        spec = spec_of(tapp)
        template_content(spec, name)
        path = (*template_path(spec, name), "metadata", "annotations", key)
        tapp = put(tapp, path, at)
    return tapp


def paused(tapp: Document) -> Document:
    return put(tapp, ("spec", "updateStrategy", "paused"), value=True)


def resumed(tapp: Document) -> Document:
    return drop(tapp, ("spec", "updateStrategy", "paused"))


def retried(tapp: Document, rollback: str) -> Document:
    """Returns the TApp with the annotation that ends an automatic rollback, so that the service
    rolls out the failed revision once more.

    `rollback` names the rollback, as `RolledBackNote.retry` does.
    """
    return put(tapp, ("metadata", "annotations", RETRY), rollback)


def with_partition(tapp: Document, value: int | str) -> Document:
    """Returns the TApp with this updateStrategy.partition.

    For the values 0 and 0% the field is removed.
    """
    path = ("spec", "updateStrategy", "partition")
    return drop(tapp, path) if value in (0, "0%") else put(tapp, path, value)


def with_budget(tapp: Document, value: int | str) -> Document:
    """Returns the TApp with this updateStrategy.maxUnavailable.

    This field is the budget of instances that run the rolling template. `updateStrategy.template`
    names that template; if the field is not set, it is the default template.
    """
    return put(tapp, ("spec", "updateStrategy", "maxUnavailable"), value)


def with_canary_budget(tapp: Document, value: int | str) -> Document:
    """Returns the TApp with this budget for instances that do not run the rolling template.

    The field is `spec.updateStrategy.forceUpdate.maxUnavailable`. The rolling template is the one
    that `updateStrategy.template` names, or else the default template.
    """
    return put(tapp, ("spec", "updateStrategy", "forceUpdate", "maxUnavailable"), value)


def scaled(tapp: Document, replicas: int) -> Document:
    return put(tapp, ("spec", "replicas"), replicas)


def with_template_content(tapp: Document, name: str, body: Document) -> Document:
    """Returns the TApp whose template `name` has the content `body`.

    The template is added to the pool if it does not exist.
    """
    return put(tapp, template_path(spec_of(tapp), name), body)


def with_restored_values(tapp: Document, name: str, body: Document, kept: Document) -> Document:
    """Returns the TApp with the values that a template's placeholders read in an earlier revision.

    The values of instances that run another template do not change. Raises CommandError if the
    template reads values and the revision has none.

    Args:
        tapp: the TApp.
        name: the name of the template.
        body: the content of the template in the revision, with the placeholders.
        kept: the values of the revision, as the history has them: `values` and `defaultValues`.
    """
    keys = placeholders_in(body).keys
    if keys and not kept:
        raise CommandError(
            "the history has no values for this revision; repeat the command without --with-values"
        )
    spec: Document = tapp.get("spec") or {}
    defaults = _without(spec.get("defaultValues"), keys) | (kept.get("defaultValues") or {})
    before: Document = spec.get("values") or {}
    then: Document = kept.get("values") or {}
    chosen, default = spec.get("templates") or {}, spec_of(tapp).default_name
    after = {
        id: own
        for id in dict.fromkeys([*before, *then])
        if (
            own := _without(before.get(id), keys) | (then.get(id) or {})
            if (chosen.get(id) or default) == name
            else before.get(id)
        )
    }
    for field, values in (("values", after), ("defaultValues", defaults)):
        if values != (spec.get(field) or {}):
            tapp = put(tapp, ("spec", field), values)
    return tapp


def _without(values: Document | None, keys: Container[str]) -> Document:
    return {key: value for key, value in (values or {}).items() if key not in keys}


def with_cause(tapp: Document, cause: str) -> Document:
    """Returns the TApp with the cause of its change, which the history shows for the new
    revisions.
    """
    return put(tapp, ("metadata", "annotations", CHANGE_CAUSE), cause)


def rebased(before: Document, after: Document, base: Document) -> Document:
    """Applies an edit to a newer version of the TApp, in which only labels and annotations differ.

    `before` and `after` are the TApp before and after the edit, and `base` is the TApp as it is
    now. Returns `base` with the spec of `after` and with the annotations that the edit changes.
    """
    old, new = ((each.get("metadata") or {}).get("annotations") or {} for each in (before, after))
    result = {**base, "spec": after.get("spec")}
    for key in sorted(old.keys() | new.keys()):
        path = ("metadata", "annotations", key)
        if key not in new:
            result = drop(result, path)
        elif new[key] != old.get(key):
            result = put(result, path, new[key])
    return result


def template_content(spec: TAppSpec, name: str) -> Document:
    """Returns the content of a template; raises UsageError if the template does not exist."""
    body = spec.find_template(name)
    if body is None:
        hint = name_suggestion(name, template_names(spec))
        raise UsageError(f"there is no template {name!r}{hint}")
    return body


def template_path(spec: TAppSpec, name: str) -> tuple[str, ...]:
    """Returns the path in the TApp at which a template is or would be, as a sequence of keys."""
    if name != DEFAULT_TEMPLATE:
        return "spec", "templatePool", name
    # Without spec.template, a template called `default` in the pool is the default template.
    body = spec.find_template(name)
    pooled = body is not None and body is not spec.template
    return ("spec", "templatePool", name) if pooled else ("spec", "template")


def put(document: Document, path: tuple[str, ...], value: Any) -> Document:
    """Returns a copy of the document with a value at a path, which is a sequence of keys.

    Missing or null objects on the path are created.
    """
    key, *rest = path
    if rest:
        value = put(document.get(key) or {}, tuple(rest), value)
    return document | {key: value}


def drop(document: Document, path: tuple[str, ...]) -> Document:
    """Returns a copy of the document without the value at a path, which is a sequence of keys.

    If there is no such value, the copy equals the document.
    """
    key, *rest = path
    if not rest:
        return {name: value for name, value in document.items() if name != key}
    inner = document.get(key)
    return document | {key: drop(inner, tuple(rest))} if inner else document


def json_patch(before: Document, after: Document) -> list[Operation]:
    """Returns the JSON patch (RFC 6902) that turns `before` into `after`."""
    patch: list[Operation] = jsonpatch.make_patch(before, after).patch
    return patch


def guarded_patch(before: Document, after: Document) -> list[Operation]:
    """Returns the JSON patch from `before` to `after`, which the API server applies only if the
    spec has not changed since `before`.

    The patch tests the uid and the generation, so the API server refuses it if one of them is no
    longer that of `before`. The generation changes only with the spec. A test of the
    resourceVersion would fail again and again during a rollout, because the status changes all the
    time. Source: Kubernetes API conventions, "metadata.generation".
    """
    metadata = before["metadata"]
    tests = [
        {"op": "test", "path": f"/metadata/{field}", "value": metadata[field]}
        for field in ("uid", "generation")
    ]
    return [*tests, *json_patch(before, after)]
