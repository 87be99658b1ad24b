"""All desired children of a plan, in a fixed order: claims by name, then pods by number."""

from typing import Any

from tapp.judge import Action, Instance, Verdict
from tapp.plan import Options, Plan
from tapp.render import kept_claim, kept_pod, new_claim, new_pod, overlaid_pod
from tapp.templates import Template

Document = dict[str, Any]


class NamespaceMissingError(Exception):
    """Claims are due, but the request does not show the Namespace that must co-own them.

    Without that second owner the garbage collector would delete the data together with the TApp.
    """


def desired_children(plan: Plan, options: Options) -> list[Document]:
    """The children of an answer. What is left out, Metacontroller deletes.

    Raises:
        NamespaceMissingError: a claim would be created unprotected.
    """
    tapp, claims = plan.world.tapp, plan.claims
    children = [kept_claim(claim) for claim in claims.keep]
    if claims.create:
        uid = plan.world.namespace_uid
        if not uid:
            raise NamespaceMissingError(
                f"related has no Namespace {tapp.metadata.namespace!r} to co-own the claims of "
                f"{tapp.metadata.name!r}: does the CompositeController call /customize?"
            )
        children += [new_claim(tapp, claim, uid) for claim in claims.create]
    for instance, verdict in zip(plan.instances, plan.verdicts, strict=True):
        pod = _pod(plan, instance, verdict, options)
        if pod is not None:
            children.append(pod)
    children += [kept_pod(pod, None) for pod in plan.world.foreign]
    return children


def _pod(plan: Plan, instance: Instance, verdict: Verdict, options: Options) -> Document | None:
    pod, template = instance.pod, instance.template
    match verdict.action:
        case Action.ABSENT | Action.DELETE | Action.RECREATE:
            return None
        case Action.CREATE:
            assert isinstance(template, Template)  # noqa: S101 - judge resolved it
            return new_pod(plan.world.tapp, instance.id, template, options.toleration_seconds)
        case Action.UPDATE | Action.ADOPT:
            assert isinstance(template, Template)  # noqa: S101
            assert pod is not None  # noqa: S101
            return overlaid_pod(pod, instance.id, template, verdict)
        case Action.KEEP:
            assert pod is not None  # noqa: S101
            known = template if isinstance(template, Template) and instance.updated else None
            return kept_pod(pod, known)
