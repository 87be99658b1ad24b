"""All desired children of a plan, in a fixed order: claims by name, then pods by number."""

from typing import Any

import msgspec
from msgspec import Raw

from tapp.judge import Action, Instance, Verdict
from tapp.lookalike import Pattern
from tapp.observe import Pod
from tapp.plan import Options, Plan
from tapp.render import kept_claim, kept_pod, new_claim, new_pod, overlaid_pod
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
    kept = KeptPods()
    for instance, verdict in zip(plan.instances, plan.verdicts, strict=True):
        child = _pod(plan, instance, verdict, options, kept)
        if child is not None:
            children.append(child)
    children += [kept.answer(pod, None) for pod in plan.world.foreign]
    return children


class KeptPods:
    """Answers for pods that stay as they are: made once for all pods that look alike."""

    def __init__(self) -> None:
        """Starts without any answer."""
        self._patterns: dict[tuple[int, bool], Pattern] = {}

    def answer(self, pod: Pod, template: Template | None) -> Child:
        """The answer for one pod; `template` as in `kept_pod`."""
        look = pod.look
        if look.shared_by is None:
            return kept_pod(look, template)
        key = (id(look), template is None)
        pattern = self._patterns.get(key)
        if pattern is None:
            text = msgspec.json.encode(kept_pod(look, template))
            pattern = self._patterns[key] = Pattern(text, look.shared_by)
        return Raw(pattern.fill(pod.values))


def _pod(
    plan: Plan, instance: Instance, verdict: Verdict, options: Options, kept: KeptPods
) -> Child | None:
    pod, template = instance.pod, instance.template
    match verdict.action:
        case Action.KEEP:
            assert pod is not None  # noqa: S101 - there is nothing else to keep
            known = template if isinstance(template, Template) and instance.updated else None
            return kept.answer(pod, known)
        case Action.ABSENT | Action.DELETE | Action.RECREATE:
            return None
        case Action.CREATE:
            assert isinstance(template, Template)  # noqa: S101 - judge resolved it
            return new_pod(plan.world.tapp, instance.id, template, options.toleration_seconds)
        case Action.UPDATE | Action.ADOPT:
            assert isinstance(template, Template)  # noqa: S101
            assert pod is not None  # noqa: S101
            return overlaid_pod(pod, instance.id, template, verdict)
