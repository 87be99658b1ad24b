"""Asks the API server by dry runs whether it would create the children of an edited TApp: pods,
claims and Services.

The API server accepts a TApp with an invalid pod template, because the schema of a CRD cannot
express all rules for pods. An update would then delete the old pods, and the API server would
refuse the new ones. So `try_children`, the entry point, creates one pod of each new template in a
dry run, as Metacontroller would create it. It also creates one claim of each new claim template,
and one Service of a new Service template.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import ValidationError

from kubectl_tapp.base.arguments import template_users
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.access import ClusterAccess
from kubectl_tapp.cluster.kubectl import KubectlError
from simulator.api.apply import with_last_applied
from simulator.objects.objects import labels_of, with_meta
from tapp.answer.claim_answers import new_claims
from tapp.decide.instances import Instance
from tapp.decide.new_pod import NewPods
from tapp.declared.claims_and_service import claim_templates
from tapp.declared.lookup import Templates, resolve_templates
from tapp.declared.model import TApp, TAppSpec
from tapp.declared.placeholders import UnfilledError
from tapp.declared.templates import Template
from tapp.kube.owners import controller_ref
from tapp.storage.claims import OwnClaims, claims_of
from tapp.storage.new_claims import NewClaim
from tapp.storage.services import OwnServices
from tapp.words.vocabulary import CONTROLLER_UID, TEMPLATE_HASH

# Replaces the uid of a TApp that does not exist yet
_NO_UID = "00000000-0000-4000-8000-000000000000"
_MAX_TRIALS = 20  # Largest number of dry runs for one edit


@dataclass(frozen=True)
class Trial:
    """One object that is created in a dry run, to see whether the API server accepts its
    template.
    """

    description: str  # the words for such objects in messages, such as "pods of template 'blue'"
    changed: bool  # True if the edit changes the template of the object
    document: Document  # the object as Metacontroller would create it


@dataclass(frozen=True)
class TrialResults:
    """The results of the dry runs, as sentences for the user."""

    refused: tuple[str, ...] = ()  # refusals of templates that the edit changes
    # refusals that the edit does not cause: the template is unchanged, or refers to an object that
    # does not exist yet
    stuck: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # objects that the API server could not check, with the reasons


def try_children(
    cluster: ClusterAccess, observed: Observed, edited: Document, toleration_seconds: int
) -> TrialResults:
    """Creates one object of each new template in a dry run, and returns the API server's answers as
    sentences.

    A sentence says that the API server refuses an object, or that it could not check an object.
    Accepted objects have no sentence. Raises KubectlError if the API server cannot be reached.

    Args:
        cluster: the access to the cluster.
        observed: the TApp before the edit, with its objects.
        edited: the TApp after the edit.
        toleration_seconds: an option of the service, which sets tolerations in the pods that it
            creates.
    """
    found = list(trials(observed, edited, toleration_seconds))
    refused, stuck, remarks = list[str](), list[str](), list[str]()
    if (more := len(found) - _MAX_TRIALS) > 0:
        remarks.append(f"{more} more new templates were not tried on the API server")
    for trial in found[:_MAX_TRIALS]:
        try:
            cluster.try_create(trial.document)
        except KubectlError as error:
            if error.reason in ("Unreachable", "Timeout", "Unauthorized"):
                raise
            why = _reason_not_checked(error)
            if why is None:
                refusal = f"the API server refuses the {trial.description}: {error}"
                (refused if trial.changed and not _misses_object(error) else stuck).append(refusal)
            elif why:
                remarks.append(f"the API server did not check the {trial.description}: {why}")
    return TrialResults(tuple(refused), tuple(stuck), tuple(remarks))


def _reason_not_checked(error: KubectlError) -> str | None:
    """Returns why the API server could not check an object, although it returned an error.

    Returns None if the error means that the object is refused, and "" if the error shows that the
    object is valid.
    """
    text = str(error)
    # The API server checks last whether the name exists, so the object is valid in all other
    # respects.
    if error.reason == "AlreadyExists":
        return ""
    if error.reason == "Forbidden":
        return f"you may not create such an object ({error})"
    if "exceeded quota" in text or "status unknown for quota" in text:
        return f"the quota of the namespace is used up now ({error})"
    if error.reason == "InternalError" or "does not support dry run" in text:
        return text
    return None


def _misses_object(error: KubectlError) -> bool:
    """Returns True if admission refused an object because another object does not exist.

    The missing object, for example a ServiceAccount, may be in the user's file as well, and so
    exist when the pod is created.
    """
    return error.reason == "Denied" and bool(_MISSING.search(str(error)))


_MISSING = re.compile(
    r"serviceaccount .* not found|no PriorityClass with name|RuntimeClass .* not found"
)


def trials(observed: Observed, edited: Document, toleration_seconds: int) -> Iterator[Trial]:
    """Yields one pod, claim or Service of each template that is new or that the edit changes.

    A pod template is new if no pod has its hash and if an instance runs it or the edit changes it.
    Nothing is yielded for a spec that the service cannot parse, or for a template with placeholders
    that have no value: the plan reports these mistakes without the API server.

    Args:
        observed: the TApp before the edit, with its objects.
        edited: the TApp after the edit.
        toleration_seconds: an option of the service, which sets tolerations in the pods that it
            creates.
    """
    live = observed.tapp["metadata"]
    space = edited["metadata"].get("namespace") or live.get("namespace") or "default"
    metadata = {**edited["metadata"], "namespace": space, "uid": live.get("uid") or _NO_UID}
    owner = {**edited, "metadata": metadata, "status": {}}
    try:
        tapp = TApp.model_validate(owner)
    except ValidationError:
        return
    before = _spec_before(observed.tapp)
    templates = resolve_templates(tapp.spec, tapp.metadata.name, space)
    for description, changed, document in (
        *_pods(observed, before, tapp, templates, toleration_seconds),
        *_claims(before, tapp, templates),
        *_services(before, tapp, templates),
    ):
        yield Trial(description, changed, _as_created(document, owner))


_Found = Iterator[tuple[str, bool, Document]]


def _spec_before(tapp: Document) -> TAppSpec | None:
    """Returns the present spec of a TApp; None if the TApp does not exist yet or its spec is
    invalid.
    """
    if not tapp["metadata"].get("uid"):
        return None
    with suppress(ValidationError):
        return TAppSpec.model_validate(tapp.get("spec") or {})
    return None


def _pods(
    observed: Observed,
    before: TAppSpec | None,
    tapp: TApp,
    templates: Templates,
    toleration_seconds: int,
) -> _Found:
    spec = tapp.spec
    users = template_users(spec)
    # The templates with these hashes need no dry run, because the API server has accepted a pod of
    # each.
    accepted_hashes = {labels_of(pod).get(TEMPLATE_HASH) for pod in observed.pods}
    # If one of these fields changes, the pods of all templates change, so an existing pod proves
    # nothing.
    affects_all_pods = before is None or any(
        getattr(before, field) != getattr(spec, field)
        for field in ("service_name", "volume_claim_templates", "force_delete_pod")
    )
    for name in dict.fromkeys([spec.default_name, "default", *spec.template_pool]):
        body, ids = spec.find_template(name), users.get(name, [])
        changed = body is not None and (before is None or before.find_template(name) != body)
        if body is None or not (ids or changed):
            continue
        # A template that no instance runs is tried as if instance 0 ran it.
        id = ids[0] if ids else 0
        alone = spec if ids else spec.model_copy(update={"templates": {str(id): name}})
        template = replace(templates, spec=alone).of(id)
        if not isinstance(template, Template) or (
            template.revision in accepted_hashes and not affects_all_pods
        ):
            continue
        instance = Instance(id, None, name, template, service_name=spec.service_name)
        volumes = claims_of(tapp.metadata.name, id, claim_templates(spec))
        document = NewPods(tapp, toleration_seconds).of(instance, template, volumes)
        yield f"pods of template {name!r}", changed or affects_all_pods, document


def _claims(before: TAppSpec | None, tapp: TApp, templates: Templates) -> _Found:
    old = {} if before is None else claim_templates(before)
    own = OwnClaims(templates, templates)
    for name, template in claim_templates(tapp.spec).items():
        if old.get(name) == template:
            continue
        with suppress(UnfilledError):
            claim = NewClaim(f"{name}-{tapp.metadata.name}-0", 0, own.named(name, 0))
            (document,) = new_claims(tapp, [claim], _NO_UID)
            yield f"claims of claim template {name!r}", True, document


def _services(before: TAppSpec | None, tapp: TApp, templates: Templates) -> _Found:
    template = tapp.spec.service_template
    if template is None or (before is not None and before.service_template == template):
        return
    own = OwnServices(templates, tapp.metadata.uid)
    if not own.problem:
        with suppress(UnfilledError):
            yield "Services of spec.serviceTemplate", True, own.of(0)


def _as_created(document: Document, owner: Document) -> Document:
    """Returns an object with the label, the annotation and the owner that Metacontroller adds to
    it.

    `owner` is the TApp. `blockOwnerDeletion` is False, because the value True would require a
    permission that the user may lack.
    """
    uid = owner["metadata"]["uid"]
    labelled = with_meta(document, labels={CONTROLLER_UID: uid, **labels_of(document)})
    found = with_last_applied(labelled, labelled)
    owners = found["metadata"].get("ownerReferences") or []
    ref = {**controller_ref(owner), "blockOwnerDeletion": False}
    return dict(with_meta(found, ownerReferences=[*owners, ref]))
