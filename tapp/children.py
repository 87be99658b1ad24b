"""All desired children of a plan, in a fixed order: claims by name, then pods by number."""

from typing import Any

import msgspec
from msgspec import Raw

from tapp.appearance import Appearance, Values
from tapp.judge import CURRENT, Action, Instance, Verdict, changed_images
from tapp.lookalike import Pattern
from tapp.model import TApp
from tapp.observe import Pod
from tapp.plan import Options, Plan
from tapp.render import kept_claim, kept_pod, new_claim, new_pod, overlaid_pod, update_record
from tapp.templates import Template
from tapp.vocabulary import INSTANCE, POD_INDEX

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
    kept, updated = KeptPods(), UpdatedPods()
    new = NewPods(tapp, options.toleration_seconds)
    for instance, verdict in zip(plan.instances, plan.verdicts, strict=True):
        child = _pod(instance, verdict, kept, updated, new)
        if child is not None:
            children.append(child)
    children += [kept.answer(pod, None) for pod in plan.world.foreign]
    return children


class KeptPods:
    """Answers for pods that stay as they are: made once for all pods that look alike."""

    def __init__(self) -> None:
        """Starts without any answer."""
        self._patterns: dict[tuple[Appearance, Template | None], Pattern] = {}

    def answer(self, pod: Pod, template: Template | None) -> Child:
        """The answer for one pod; `template` as in `kept_pod`."""
        look = pod.look
        if look.shared_by is None:
            return kept_pod(look, template)
        pattern: Pattern | None = look.kept or self._patterns.get((look, template))
        if pattern is None:
            text = msgspec.json.encode(kept_pod(look, template))
            pattern = self._patterns[look, template] = Pattern(text, look.shared_by)
            if look.projected is not None:  # then no template has a say
                look.kept = pattern
        return Raw(pattern.format % pattern.pick(pod.values))


class UpdatedPods:
    """Answers for pods that change in place: made once for all pods that look alike.

    Only the record of what ran before the update is each pod's own.
    """

    _RECORD = b"(what ran before)"
    """In the place of the record; a template that says so itself is answered pod by pod."""

    def answer(self, pod: Pod, instance: int, template: Template, action: Action) -> Child:
        """The answer for one pod; `action` is `UPDATE` or `ADOPT`."""
        images = changed_images(pod.look, template) if action is Action.UPDATE else {}
        patterns = pod.look.overlaid
        if images and template not in patterns:
            patterns[template] = self._pattern(pod, instance, template, images)
        pattern: Pattern | None = patterns.get(template) if images else None
        if pattern is None:
            alone = pod.alone()
            images = changed_images(alone.look, template) if images else {}
            own = update_record(alone, template, images) if images else None
            return overlaid_pod(alone.look, instance, template, images, own)
        name, number, node, token, _, _ = pod.values
        record = msgspec.json.encode(update_record(pod, template, images))[1:-1]
        return Raw(pattern.fill((name, number, node, token, record, b"")))

    def _pattern(
        self, pod: Pod, instance: int, template: Template, images: dict[str, str]
    ) -> Pattern | None:
        """The answer's text without what is each pod's own; None where that cannot be told apart.

        That is where images or the new template themselves speak of this pod, or of a record.
        """
        if pod.look.shared_by is None:
            return None
        name, number, node, token, _, _ = pod.values
        said = msgspec.json.encode(
            (template.labels, template.annotations, template.images, pod.look.images)
        )
        if any(text in said for text in (name, token or name, self._RECORD, *_OWN_KEYS)):
            return None
        look = pod.alone().look
        document = overlaid_pod(look, instance, template, images, self._RECORD.decode())
        text = msgspec.json.encode(document)
        return Pattern(text, (name, number, node, token, self._RECORD, b""))


_OWN_KEYS = (INSTANCE.encode(), POD_INDEX.encode(), b"nodeName")


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
        return self._prefix + number, number, b"", b"", b"", b""


def _pod(
    instance: Instance, verdict: Verdict, kept: KeptPods, updated: UpdatedPods, new: NewPods
) -> Child | None:
    pod, template = instance.pod, instance.template
    if verdict is CURRENT and pod is not None and isinstance(template, Template):
        return kept.answer(pod, template)
    match verdict.action:
        case Action.KEEP:
            assert pod is not None  # noqa: S101 - there is nothing else to keep
            known = template if instance.updated and isinstance(template, Template) else None
            return kept.answer(pod, known)
        case Action.ABSENT | Action.DELETE | Action.RECREATE:
            return None
        case Action.CREATE:
            assert isinstance(template, Template)  # noqa: S101 - judge resolved it
            return new.create(instance.id, template)
        case Action.UPDATE | Action.ADOPT:
            assert isinstance(template, Template)  # noqa: S101
            assert pod is not None  # noqa: S101
            return updated.answer(pod, instance.id, template, verdict.action)
