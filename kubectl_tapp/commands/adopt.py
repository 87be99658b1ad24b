"""`kubectl tapp adopt`: makes pods and claims that have the names of a TApp's children its
children.
"""

from dataclasses import replace
from functools import partial

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.words import plural
from kubectl_tapp.cluster.access import CLAIMS, PODS, SERVICES, TAPPS
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.session import uninterrupted
from kubectl_tapp.commands.act import changed_error
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.commands.writes import write_each
from kubectl_tapp.edit.adoption import (
    Stray,
    adopting_patch,
    as_adopted,
    find_strays,
    lacks_namespace_owner,
    lost_label,
    lost_selectors,
)
from tapp.words.groups import grouped
from tapp.words.ranges import id_list

_WHAT_HAPPENS = {
    "Delete": "will be deleted",
    "Recreate": "will be replaced",
    "UpdateInPlace": "will be updated in place",
}
# Attempts for one object: each write of a kubelet makes a patch with the old resourceVersion fail
_TRIES = 3


def adopt(verb: Verb, ids: list[str] | None) -> None:
    """Shows the objects that can be adopted, asks for confirmation, and adopts the objects.

    `ids` are the instances whose pods and claims are adopted, as typed by the user; None or an
    empty list means all instances.
    """
    session, cluster = verb.session, verb.session.cluster
    verb.seen.require_readable(CLAIMS)
    tapp_names = {each["metadata"]["uid"]: each["metadata"]["name"] for each in cluster.list(TAPPS)}
    every = find_strays(
        verb.tapp, cluster.list(PODS), cluster.list(CLAIMS), tapp_names, verb.seen.namespace
    )
    wanted = set(verb.ids(ids)) if ids else None
    chosen = [each for each in every if wanted is None or each.id in wanted]
    taken = [each for each in chosen if not each.obstacle]
    _show(verb, chosen)
    if not taken:
        session.say(f"{verb.name}: there is nothing to adopt")
        return
    _show_next(verb, taken)

    def check() -> None:
        if too_late := changed_error(verb.tapp, cluster.get(TAPPS, verb.name)):
            # After a change of the spec the instances may be outside spec.replicas, and adopted
            # pods would be deleted.
            raise too_late

    take = partial(_take, verb, tapp_names)
    attempt = partial(take, dry_run=True)
    if write_each(verb, taken, "adopted", _counts_phrase, attempt=attempt, write=take, check=check):
        verb.wait_after_write(sorted({each.id for each in taken}))


def _counts_phrase(taken: list[Stray]) -> str:
    pods = sum(each.resource == PODS for each in taken)
    claims = len(taken) - pods
    counts = ((pods, "pod"), (claims, "claim"))
    return " and ".join(f"{number} {plural(number, word)}" for number, word in counts if number)


def _show(verb: Verb, found: list[Stray]) -> None:
    lines = grouped(((x.resource, x.prefix, x.owner_phrase, x.obstacle), x.id) for x in found)
    for title, left in (("To adopt", False), ("Not adopted", True)):
        some_left = {key: ids for key, ids in lines.items() if bool(key[3]) is left}
        if some_left:
            verb.session.say(title)
        for (resource, prefix, owner, obstacle), ids in some_left.items():
            names = f"{prefix}{ids[0]}" if len(ids) == 1 else f"{prefix}N (N: {id_list(ids)})"
            kind = "pod" if resource == "pods" else "claim"
            more = f"; {obstacle}" if obstacle else ""
            verb.session.say(f"  {kind} {names}: {owner}{more}")


def _show_next(verb: Verb, taken: list[Stray]) -> None:
    """Prints what the service will do with the adopted objects `taken` in its next sync.

    For example, the service updates or deletes an adopted pod that differs from its template.
    """
    session, seen = verb.session, verb.seen
    pods, claims = (
        [as_adopted(each.item, verb.tapp) for each in taken if (each.resource == PODS) is kind]
        for kind in (True, False)
    )
    names = {each["metadata"]["name"] for each in (*pods, *claims)}
    after = replace(
        seen,
        pods=[*(each for each in seen.pods if each["metadata"]["name"] not in names), *pods],
        claims=[*(each for each in seen.claims if each["metadata"]["name"] not in names), *claims],
    )
    plan = verb.plan_for(after)
    mine = {each.id for each in taken if each.resource == PODS}
    means = grouped(
        (
            f"{_WHAT_HAPPENS.get(str(case.decision.action), 'stays unchanged')} "
            f"({case.decision.reason}: {case.decision.message})",
            case.instance.id,
        )
        for case in plan.cases
        if case.instance.id in mine
    )
    unowned = [
        each.item["metadata"]["name"]
        for each in taken
        if each.resource == CLAIMS and lacks_namespace_owner(each.item, seen.namespace)
    ]
    storage = plan.findings.storage
    grown = sorted(names & storage.growth.to.keys())
    modified = sorted(names & storage.modification.to.keys())
    if means or grown or modified or unowned:
        session.say("Then")
    for text, ids in means.items():
        session.say(f"  pod {verb.name}-N (N: {id_list(ids)}) {text}")
    if unowned:
        session.say(f"  claims get their Namespace as a second owner: {', '.join(unowned)}")
    if grown:
        session.say(f"  claims grow to their template's size: {', '.join(grown)}")
    if modified:
        session.say(
            f"  claims get the VolumeAttributesClass of their template: {', '.join(modified)}"
        )
    try:
        services = session.cluster.list(SERVICES)
    except CommandError:  # The names of Services only make the sentence more precise
        services = []
    lost = [lost_label(verb.tapp, pods, services), *lost_selectors(verb.tapp, pods, services)]
    if texts := [f"  {text}" for text in lost if text]:
        session.say("\n".join(["Later", *texts]))


def _take(verb: Verb, tapp_names: dict[str, str], found: Stray, *, dry_run: bool = False) -> None:
    """Makes one object a child of the TApp, with a patch guarded by the object's resourceVersion.

    If the object has changed since it was read, the function reads it again and repeats the patch.
    Raises CommandError if the object can no longer be adopted.

    Args:
        verb: the running command, with its TApp.
        tapp_names: uid -> name of all TApps in the namespace.
        found: the object.
        dry_run: True if the API server only checks the patch and writes nothing.
    """
    cluster, item = verb.session.cluster, found.item
    name = item["metadata"]["name"]
    namespace = verb.seen.namespace if found.resource == CLAIMS else None
    for tries in range(_TRIES):
        patch = adopting_patch(item, verb.tapp, namespace)
        try:
            with uninterrupted():
                cluster.patch(found.resource, name, patch, "merge", dry_run=dry_run)
        except KubectlError as error:
            live = cluster.get(found.resource, name)
            if live["metadata"]["resourceVersion"] == item["metadata"]["resourceVersion"]:
                raise
            lists = ([live], []) if found.resource == PODS else ([], [live])
            now = find_strays(verb.tapp, *lists, tapp_names, verb.seen.namespace)
            same = live["metadata"]["uid"] == item["metadata"]["uid"]
            if not (same and now and not now[0].obstacle) or tries == _TRIES - 1:
                message = f"{name} was changed by another client, and was not adopted: {error}"
                raise CommandError(message, Exit.CHANGED) from None
            item = live
        else:
            return
