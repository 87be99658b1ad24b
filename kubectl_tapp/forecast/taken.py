"""Corrects a forecast if objects with the names of new children exist already.

Such objects do not belong to the TApp, for example before `kubectl tapp adopt`. So the simulation
does not contain them. If a pod has the name already, Metacontroller creates no pod and reports
nothing, and the instance stays without a pod. A claim that exists already is used by the new pod,
with its data. A Service or PodDisruptionBudget of another owner stays, and the TApp gets none.
"""

from collections.abc import Collection, Iterable, Mapping, Sized
from dataclasses import replace

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.words import instances_phrase, plural
from kubectl_tapp.cluster.access import CLAIMS, PODS, SERVICES, ClusterAccess
from kubectl_tapp.cluster.belonging import orphaning_command, ownership_advice, ownership_of
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.edit.adoption import lost_label
from kubectl_tapp.forecast.forecast import Forecast, InstanceForecast, Outcome
from kubectl_tapp.forecast.run_log import Write
from tapp.storage.claims import instance_number
from tapp.words.conditions import Type
from tapp.words.groups import grouped
from tapp.words.kinds import CLAIM, DISRUPTION_BUDGET, POD, SERVICE
from tapp.words.quoted import short

_MAX_NAMED = (
    # Largest number of names in one call of kubectl; for more names, all objects of the namespace
    # are listed
    100
)
_MAX_CHARACTERS = 200  # Largest number of characters of a list of names in a sentence
_POD = "a pod with its name exists already"


def with_existing_children(
    cluster: ClusterAccess, observed: Observed, edited: Document, found: Forecast
) -> Forecast:
    """Returns the forecast, corrected for objects that exist already and do not belong to the TApp.

    A remark of the result names the pods that will lose a label of a StatefulSet: pods of the TApp,
    and pods that it is about to adopt.

    Args:
        cluster: the access to the cluster.
        observed: the TApp before the edit, with its objects. A TApp without a uid does not exist
            yet.
        edited: the TApp after the edit.
        found: the forecast.
    """
    name, space, tapp = found.name, found.namespace, observed.tapp
    rest = () if found.rest is None else found.rest.instances
    ids = [x.id for x in found.instances if x.outcome is Outcome.CREATED or x.id in rest]
    claims = [claim for claim, how in found.claims.items() if how == "created"]
    uid = tapp["metadata"].get("uid") or "none yet"
    metadata = {**tapp["metadata"], "uid": uid, "namespace": space}
    tapp = {**tapp, "metadata": metadata}
    there: dict[str, dict[str, str]] = {}
    unread, pods_seen = list[str](), observed.pods
    for resource, names in ((PODS, [f"{name}-{id}" for id in ids]), (CLAIMS, claims)):
        items = _look_up(cluster, resource, names, space)
        if isinstance(items, str):
            unread.append(f"it is unknown which {resource} exist already: {items}")
            items = []
        pods_seen = [*pods_seen, *items] if resource == PODS else pods_seen
        there[resource] = {x["metadata"]["name"]: w for x in items if (w := _owner_phrase(x, tapp))}
    pods = {
        id: whose
        for pod, whose in there[PODS].items()
        if (id := instance_number(pod, f"{name}-")) is not None
    }
    found = _without_creations(found, pods, there[CLAIMS].keys())
    stuck = [
        f"{_existing('pod', [f'{name}-{id}' for id in taken])}, so none is created for "
        f"{instances_phrase(taken)}: {_it_or_each(taken)} {whose}"
        for whose, taken in grouped((whose, id) for id, whose in pods.items()).items()
    ]
    used = [
        f"{_existing('claim', names)} and will be used: {_it_or_each(names)} {whose}"
        for whose, names in grouped((whose, name) for name, whose in there[CLAIMS].items()).items()
    ]
    lost = [text] if (text := lost_label(edited, pods_seen)) else []
    remarks = (*found.remarks, *used, *unread, *lost)
    found = replace(found, stuck=(*found.stuck, *stuck), remarks=remarks)
    return _without_taken_budget(cluster, tapp, _without_taken_services(cluster, tapp, found))


def _without_taken_services(cluster: ClusterAccess, tapp: Document, found: Forecast) -> Forecast:
    """Returns the forecast without Services that cannot be created, because their names are taken.

    `tapp` is the TApp before the edit, with a uid.
    """
    names = [each for each, how in found.services.items() if how == "created"]
    items = _look_up(cluster, SERVICES, names, found.namespace)
    if isinstance(items, str):
        unread = f"it is unknown which Services exist already: {items}"
        return replace(found, remarks=(*found.remarks, unread))
    owners = {each["metadata"]["name"]: ownership_of(each, tapp).text for each in items}
    taken = {each: whose for each, whose in owners.items() if whose}
    texts = [
        f"{_existing('Service', each)}, so none is created there: {_it_or_each(each)} {whose}; "
        "an instance gets its own Service after you delete the one with its name"
        for whose, each in grouped((whose, each) for each, whose in taken.items()).items()
    ]
    return replace(
        found,
        refusals=(*found.refusals, *((str(Type.SERVICES_NOT_CREATED), each) for each in texts)),
        services={each: how for each, how in found.services.items() if each not in taken},
        writes=_other_writes(found, {(SERVICE.name, each) for each in taken}),
    )


def _without_taken_budget(cluster: ClusterAccess, tapp: Document, found: Forecast) -> Forecast:
    """Returns the forecast without a PodDisruptionBudget whose name is taken.

    `tapp` is the TApp before the edit, with a uid.
    """
    if not found.disruption_budget.startswith("PodDisruptionBudget created"):
        return found
    items = _look_up(cluster, DISRUPTION_BUDGET.qualified, [found.name], found.namespace)
    if isinstance(items, str):
        unread = f"it is unknown whether PodDisruptionBudget {found.name} exists already: {items}"
        return replace(found, remarks=(*found.remarks, unread))
    whose = "".join(ownership_of(each, tapp).text for each in items)
    if not whose:
        return found
    text = (
        f"PodDisruptionBudget {found.name} exists already, so none is created, and "
        f"spec.disruptionBudget limits no evictions: it {whose}; delete it, and the TApp gets its "
        "own"
    )
    refusal = (str(Type.DISRUPTION_BUDGET_NOT_APPLIED), text)
    return replace(
        found,
        refusals=(*found.refusals, refusal),
        disruption_budget="",
        writes=_other_writes(found, {(DISRUPTION_BUDGET.name, found.name)}),
    )


def _other_writes(found: Forecast, taken: Collection[tuple[str, str]]) -> tuple[Write, ...]:
    """Returns the writes of a forecast, without the creations of the objects in `taken`.

    `taken` has pairs of kind and name.
    """
    return tuple(x for x in found.writes if x.verb != "create" or (x.kind, x.name) not in taken)


def _existing(word: str, names: list[str]) -> str:
    exist = "exists" if len(names) == 1 else "exist"
    return f"{plural(len(names), word)} {short(', '.join(names), _MAX_CHARACTERS)} {exist} already"


def _it_or_each(names: Sized) -> str:
    return "it" if len(names) == 1 else "each"


def _look_up(
    cluster: ClusterAccess, resource: str, names: list[str], space: str
) -> list[Document] | str:
    """Returns the existing objects with these names, or a sentence that says why they cannot be
    read.
    """
    if not names:
        return []
    if len(names) <= _MAX_NAMED:
        return cluster.get_named(resource, names, space)
    known = set(names)
    try:
        return [each for each in cluster.list(resource) if each["metadata"]["name"] in known]
    except KubectlError as error:
        return str(error)


def _owner_phrase(item: Document, tapp: Document) -> str:
    """Returns a phrase that names the owner of an object and says how the TApp can adopt the
    object.

    Returns "" if the object belongs to the TApp.
    """
    text = ownership_advice(item, tapp)
    orphan = orphaning_command(item, tapp["metadata"].get("namespace") or "")
    if text and orphan:
        return f"{text}; after {orphan}, {tapp_command(tapp, 'adopt')} adopts it"
    return text


def _without_creations(found: Forecast, pods: Mapping[int, str], claims: Iterable[str]) -> Forecast:
    """Returns the forecast without the creation of pods and claims whose names are taken.

    `pods` maps instance numbers to phrases about the owner of the existing pod. The outcome of
    these instances becomes waiting. `claims` are the names of existing claims. Their effect becomes
    kept.
    """
    kept = dict.fromkeys(claims, "kept")

    def instance(each: InstanceForecast) -> InstanceForecast:
        own = {claim: kept.get(claim, how) for claim, how in each.claims.items()}
        each = replace(each, claims=own)
        if each.id not in pods or each.outcome is not Outcome.CREATED:
            return each
        why = f"{_POD}: it {pods[each.id]}"
        waiting = replace(each, outcome=Outcome.WAITING, waits_for=why)
        return replace(waiting, message="", began=None, done=None)

    # A step that creates only such pods has nothing left and is removed. A step without any
    # instance, which changes only labels, stays.
    steps = (
        replace(each, created=tuple(id for id in each.created if id not in pods))
        for each in found.steps
        if not each.created
        or not pods.keys() >= {*each.created}
        or (each.updated or each.recreated or each.deleted)
    )
    taken = {*((POD.name, f"{found.name}-{id}") for id in pods), *((CLAIM.name, x) for x in kept)}
    return replace(
        found,
        instances=tuple(map(instance, found.instances)),
        claims={claim: kept.get(claim, how) for claim, how in found.claims.items()},
        steps=tuple(steps),
        writes=_other_writes(found, taken),
    )
