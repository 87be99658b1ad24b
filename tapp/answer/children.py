"""All desired children of a plan, in a fixed order: revisions, claims, Services, pods."""

from typing import Any, Protocol

from msgspec import Raw

from tapp.answer import render
from tapp.answer.claim_answers import grown_claim, new_claims
from tapp.answer.pullers import new_puller
from tapp.decide.changes import Adopt, Create, Mark, Resize, Update
from tapp.decide.instances import Instance
from tapp.decide.judge import Action
from tapp.decide.new_pod import NewPods
from tapp.declared.templates import Template
from tapp.kube.objects import ClaimObject
from tapp.plan import Plan
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.pod.update import record_of
from tapp.world import Options

Child = dict[str, Any] | Raw


class Observed(Protocol):
    """The full look of pods and claims."""

    def kept(self, pod: Pod, template: Template | None) -> Child:
        """The answer to a pod that stays as it is; `template` as in `render.kept_pod`."""

    def kept_claim(self, claim: ClaimObject) -> dict[str, Any]:
        """The answer to a claim that stays as it is."""

    def manifest(self, pod: Pod) -> Manifest:
        """A pod's labels, annotations and spec."""


class NamespaceMissingError(Exception):
    """Claims are due, but the request does not show the Namespace that must co-own them.

    Without that second owner the garbage collector would delete the data together with the TApp.
    """


def desired_children(plan: Plan, options: Options, observed: Observed) -> list[Child]:
    """The children of an answer. What is left out, Metacontroller deletes.

    Raises NamespaceMissingError: a claim would be made without the owner that protects it.
    """
    tapp, claims, history = plan.world.tapp, plan.claims, plan.history
    children: list[Child] = [render.kept_revision(revision) for revision in history.keep]
    children += [render.new_revision(tapp, record) for record in history.create]
    children += _kept_claims(plan, observed)
    if claims.create:
        uid = plan.world.namespace_uid
        if not uid:
            raise NamespaceMissingError(
                f"related has no Namespace {tapp.metadata.namespace!r} to co-own the claims of "
                f"{tapp.metadata.name!r}: does the CompositeController call /customize?"
            )
        children += new_claims(tapp, claims.create, uid)
    children += [render.kept_plain(service) for service in plan.services.keep]
    children += plan.services.apply.values()
    for instance, verdict in zip(plan.instances, plan.decisions, strict=True):
        pod, template = instance.pod, instance.template
        if isinstance(verdict.change, Resize):
            children.append(observed.kept(verdict.change.pod, None))
        elif verdict.change is not None:
            children.append(_changed(plan, instance, verdict.change, options, observed))
        elif verdict.action is Action.KEEP and pod is not None:
            known = template if instance.updated and isinstance(template, Template) else None
            children.append(observed.kept(pod, known))
    children += [observed.kept(pod, None) for pod in plan.world.foreign]
    children += [observed.kept(pod, None) for pod in plan.pulls.keep]
    children += [new_puller(tapp, puller, options.puller_image) for puller in plan.pulls.create]
    return children


def _kept_claims(plan: Plan, observed: Observed) -> list[Child]:
    kept = {claim.metadata.name: observed.kept_claim(claim) for claim in plan.claims.keep}
    for name, size in plan.growth.to.items():
        kept[name] = grown_claim(kept[name], size)
    return list(kept.values())


def _changed(
    plan: Plan,
    instance: Instance,
    change: Create | Adopt | Mark | Update,
    options: Options,
    observed: Observed,
) -> Child:
    tapp = plan.world.tapp
    match change:
        case Create(template):
            volumes = plan.claims.volumes.get(instance.id, {})
            return NewPods(tapp, options.toleration_seconds).of(instance, template, volumes)
        case Adopt(pod, template):
            manifest, before = observed.manifest(pod), instance.metadata_before
            return render.overlaid_pod(manifest, instance.id, template, {}, None, before)
        case Mark():
            return render.marked_pod(observed.manifest(change.pod), change)
        case Update(pod, template, images, restarts):
            record = None
            if images:
                now, update = plan.now, instance.update
                record = record_of(pod, template.revision, images, restarts, update, now)
            manifest, before = observed.manifest(pod), instance.metadata_before
            return render.overlaid_pod(manifest, instance.id, template, images, record, before)
