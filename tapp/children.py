"""All desired children of a plan, in a fixed order: claims by name, then pods by number."""

from typing import Any

import msgspec
from msgspec import Raw

from tapp.judge import CURRENT, Action, Instance, Verdict, changed_images
from tapp.model import TApp
from tapp.observe import Pod
from tapp.pattern import ABSENT, Pattern, SharedAnswer, Values
from tapp.plan import Options, Plan
from tapp.render import kept_claim, kept_pod, new_claim, new_pod, overlaid_pod, update_record
from tapp.templates import Template

Child = dict[str, Any] | Raw


class NamespaceMissingError(Exception):
    """Claims are due, but the request does not show the Namespace that must co-own them.

    Without that second owner the garbage collector would delete the data together with the TApp.
    """


def desired_children(plan: Plan, options: Options) -> list[Child]:
    """The children of an answer. What is left out, Metacontroller deletes.

    Raises:
        NamespaceMissingError: a claim would be created unprotected.
    """
    tapp, claims = plan.world.tapp, plan.claims
    children: list[Child] = [kept_claim(claim) for claim in claims.keep]
    if claims.create:
        uid = plan.world.namespace_uid
        if not uid:
            raise NamespaceMissingError(
                f"related has no Namespace {tapp.metadata.namespace!r} to co-own the claims of "
                f"{tapp.metadata.name!r}: does the CompositeController call /customize?"
            )
        children += [new_claim(tapp, claim, uid) for claim in claims.create]
    new = NewPods(tapp, options.toleration_seconds)
    for instance, verdict in zip(plan.instances, plan.verdicts, strict=True):
        child = _pod(instance, verdict, new)
        if child is not None:
            children.append(child)
    children += [kept_child(pod, None) for pod in plan.world.foreign]
    return children


def kept_child(pod: Pod, template: Template | None) -> Child:
    """The answer to a pod that stays as it is; `template` as in `kept_pod`."""
    look = pod.look
    if not look.shared:
        return kept_pod(look, template)
    answer = look.kept
    if template is not None and look.projected is None:
        answer = look.kept_as.get(template) or look.kept_as.setdefault(template, SharedAnswer())
    pattern = answer.proved
    if pattern is not None:
        return Raw(pattern.format % pattern.pick(pod.values))
    text = msgspec.json.encode(kept_pod(pod.alone().look, template))
    answer.learn(text, pod.values)
    return Raw(text)


def _updated(pod: Pod, instance: int, template: Template) -> Child:
    """The answer to a pod whose images, labels or annotations change in place."""
    answer = pod.look.overlaid.get(template)
    if answer is not None and answer.proved is not None:
        record = update_record(pod, template, changed_images(pod.look, template))
        return Raw(answer.proved.fill(_with_record(pod.values, record)))
    alone = pod.alone()
    images = changed_images(alone.look, template)
    if not images:
        return overlaid_pod(alone.look, instance, template, {}, None)
    record = update_record(alone, template, images)
    text = msgspec.json.encode(overlaid_pod(alone.look, instance, template, images, record))
    if pod.look.shared:
        answer = answer or pod.look.overlaid.setdefault(template, SharedAnswer())
        answer.learn(text, _with_record(pod.values, record))
    return Raw(text)


def _with_record(values: Values, record: str) -> Values:
    """A pod's own values after an update, in the answer: only this record is left in it."""
    name, number, node, token, _, _ = values
    return name, number, node, token, msgspec.json.encode(record)[1:-1], ABSENT


class NewPods:
    """Pods to create: rendered once for all instances of a template."""

    _NUMBER = 2**31 - 1
    """The number in the rendered text; no instance has it."""

    def __init__(self, tapp: TApp, toleration_seconds: int) -> None:
        """`toleration_seconds` as in `new_pod`."""
        self._tapp = tapp
        self._toleration_seconds = toleration_seconds
        self._prefix = tapp.metadata.name.encode() + b"-"
        self._patterns: dict[str, Pattern | None] = {}

    def create(self, instance: int, template: Template) -> Child:
        """The pod of one instance."""
        if template.name not in self._patterns:
            self._patterns[template.name] = self._pattern(template)
        pattern = self._patterns[template.name]
        if pattern is None:
            return self._render(instance, template)
        return Raw(pattern.fill(self._values(instance)))

    def _pattern(self, template: Template) -> Pattern | None:
        """The template's text with the instance left out; None where that cannot be told apart.

        A TApp's name that JSON escapes, or that number in the template: the proof is instance 0.
        """
        text = msgspec.json.encode(self._render(self._NUMBER, template))
        pattern = Pattern(text, self._values(self._NUMBER))
        proof = msgspec.json.encode(self._render(0, template))
        return pattern if pattern.fill(self._values(0)) == proof else None

    def _render(self, instance: int, template: Template) -> dict[str, Any]:
        return new_pod(self._tapp, instance, template, self._toleration_seconds)

    def _values(self, instance: int) -> Values:
        number = b"%d" % instance
        return self._prefix + number, number, ABSENT, ABSENT, ABSENT, ABSENT


def _pod(instance: Instance, verdict: Verdict, new: NewPods) -> Child | None:
    pod, template = instance.pod, instance.template
    if verdict is CURRENT and pod is not None and isinstance(template, Template):
        return kept_child(pod, template)
    match verdict.action:
        case Action.KEEP:
            assert pod is not None  # noqa: S101 - there is nothing else to keep
            known = template if instance.updated and isinstance(template, Template) else None
            return kept_child(pod, known)
        case Action.ABSENT | Action.DELETE | Action.RECREATE:
            return None
        case Action.CREATE:
            assert isinstance(template, Template)  # noqa: S101 - judge resolved it
            return new.create(instance.id, template)
        case Action.UPDATE:
            assert isinstance(template, Template)  # noqa: S101
            assert pod is not None  # noqa: S101
            return _updated(pod, instance.id, template)
        case Action.ADOPT:
            assert isinstance(template, Template)  # noqa: S101
            assert pod is not None  # noqa: S101
            return overlaid_pod(pod.alone().look, instance.id, template, {}, None)
