"""Corrects a forecast if pods or claims with the names of new children exist already.

Such objects do not belong to the TApp, for example before `kubectl tapp adopt`, so the forecast
ignores them. Metacontroller does not report a pod that has the name already: it creates no pod, and
the instance stays without one. A claim that exists already is used by the new pod, with its data.
"""

from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances_phrase, plural
from kubectl_tapp.cluster.access import CLAIMS, PODS, ClusterAccess
from kubectl_tapp.cluster.belonging import orphaning_command, ownership_advice
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.forecast.forecast import Forecast, InstanceForecast, Outcome
from tapp.storage.claims import instance_number
from tapp.words.groups import grouped
from tapp.words.quoted import short

_MAX_NAMED = (
    100  # Names in one call of kubectl; for more names all objects of the namespace are listed
)
_MAX_CHARACTERS = 200  # Characters of a list of names
_POD = "a pod with its name exists already"


def with_existing_children(cluster: ClusterAccess, tapp: Document, found: Forecast) -> Forecast:
    """Returns the forecast, corrected for pods and claims that exist already and are not the
    TApp's.

    `tapp` is the TApp before the edit. Without a uid it does not exist yet.
    """
    name, space = found.name, found.namespace
    rest = () if found.rest is None else found.rest.instances
    ids = [x.id for x in found.instances if x.outcome is Outcome.CREATED or x.id in rest]
    claims = [claim for claim, how in found.claims.items() if how == "created"]
    uid = tapp["metadata"].get("uid") or "none yet"
    metadata = {**tapp["metadata"], "uid": uid, "namespace": space}
    tapp = {**tapp, "metadata": metadata}
    there: dict[str, dict[str, str]] = {}
    unread = []
    for resource, names in ((PODS, [f"{name}-{id}" for id in ids]), (CLAIMS, claims)):
        items = _look_up(cluster, resource, names, space)
        if isinstance(items, str):
            unread.append(f"it is unknown which {resource} exist already: {items}")
            items = []
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
    return replace(found, stuck=(*found.stuck, *stuck), remarks=(*found.remarks, *used, *unread))


def _existing(word: str, names: list[str]) -> str:
    exist = "exists" if len(names) == 1 else "exist"
    return f"{plural(len(names), word)} {short(', '.join(names), _MAX_CHARACTERS)} {exist} already"


def _it_or_each(names: Sized) -> str:
    return "it" if len(names) == 1 else "each"


def _look_up(
    cluster: ClusterAccess, resource: str, names: list[str], space: str
) -> list[Document] | str:
    """Returns the objects with these names that exist, or a sentence that says why they are
    unreadable.
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
    """Returns a phrase that says who owns an object and how the TApp can adopt the object.

    Returns "" if the object belongs to the TApp.
    """
    text = ownership_advice(item, tapp)
    orphan = orphaning_command(item, tapp["metadata"].get("namespace") or "")
    if text and orphan:
        return f"{text}; after {orphan}, {tapp_command(tapp, 'adopt')} adopts it"
    return text


def _without_creations(found: Forecast, pods: Mapping[int, str], claims: Iterable[str]) -> Forecast:
    """Returns the forecast without the creation of pods and claims whose names are taken.

    `pods` maps instance numbers to phrases about the owner of the existing pod; such an instance
    waits. `claims` are names; an existing claim is kept.
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

    # Steps that create only these pods are left out. Steps that change only labels name no
    # instances, and stay.
    steps = (
        replace(each, created=tuple(id for id in each.created if id not in pods))
        for each in found.steps
        if not each.created
        or not pods.keys() >= {*each.created}
        or (each.updated or each.recreated or each.deleted)
    )
    names = {*(f"{found.name}-{id}" for id in pods), *kept}
    return replace(
        found,
        instances=tuple(map(instance, found.instances)),
        claims={claim: kept.get(claim, how) for claim, how in found.claims.items()},
        steps=tuple(steps),
        writes=tuple(x for x in found.writes if x.verb != "create" or x.name not in names),
    )
