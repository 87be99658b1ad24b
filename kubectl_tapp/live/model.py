"""The values that the page of `kubectl tapp web` shows, computed from an inspection of a TApp.

`list_row` makes a row of the list of TApps. `model_of` makes the model of a single TApp,
`explanation_of` the explanation of one of its instances. All values can be written as JSON.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubectl_tapp.base.arguments import template_users
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import (
    conditions_by_type,
    deletion_message,
    event_count,
    last_seen,
    state_of,
)
from kubectl_tapp.base.words import plural
from kubectl_tapp.cluster.access import PODS
from kubectl_tapp.decide.events import describe, newest
from kubectl_tapp.decide.inspection import Inspection, Row, rows_of_status, sentences_of_status
from kubectl_tapp.decide.progress import Progress
from kubectl_tapp.edit import canaries
from kubectl_tapp.edit.edits import spec_of
from kubectl_tapp.edit.revisions import HistoryEntry
from kubectl_tapp.live.banner import banner, instance_banner
from kubectl_tapp.live.budgets import budget_model
from kubectl_tapp.live.page_words import in_page_words
from kubectl_tapp.live.steps import instance_steps, next_steps
from kubectl_tapp.show.documents import instance_documents, state_document
from kubectl_tapp.show.offers import without_effect
from kubectl_tapp.show.reminders import reminders
from kubectl_tapp.show.status import grouped_changes, headline
from kubectl_tapp.show.why import explain_instances
from tapp.decide.kept_instances import label_of
from tapp.words.groups import grouped
from tapp.words.ranges import about, id_list, numbers, ranges
from tapp.words.reasons import Standing

Model = dict[str, Any]
_KINDS_BY_STATUS = {
    "Running": "ok", "Succ": "ok", "PodSucc": "ok", "Killed": "stopped", "Failed": "bad",
    "PodFailed": "bad", "Unknown": "bad", "?": "unknown",
}  # fmt: skip
"""State of an instance in the TApp's status -> kind of its tile on the page. A state without an
entry has the kind `moving`.
"""


def list_row(tapp: Document) -> Model:
    """Returns the row of a TApp in the page's list, computed from the TApp alone, without its
    pods.
    """
    metadata, status = tapp["metadata"], tapp.get("status") or {}
    observed, known = Observed(tapp), conditions_by_type(tapp)
    strip: list[list[Any]] = []
    for row in rows_of_status(observed):
        kind = _kind_from_status(row)
        if strip and strip[-1][0] == kind:
            strip[-1][1] += 1
        else:
            strip.append([kind, 1])
    well, bad = (known.get(type, {}).get("status") == "True" for type in ("Ready", "Degraded"))
    running = sum(many for kind, many in strip if kind != "stopped")
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "state": state_of(tapp),
        "kind": "bad" if bad or "bad" in dict(strip) else "ok" if well else "moving",
        "replicas": sum(many for _, many in strip),
        "ready": str(status.get("ready") or "-"),
        "run": running,
        "updated": min(running, int(status.get("updatedReplicas") or 0)),
        "waits": "" if well else in_page_words("; ".join(sentences_of_status(observed)[:2])),
        "strip": strip,
    }


def _kind_from_status(row: Row) -> str:
    kind = _KINDS_BY_STATUS.get(row.state, "moving")
    return "old" if row.outdated and kind == "ok" else kind


def model_from_status(observed: Observed) -> Model:
    """Returns the values that the page shows of a TApp if the user may not read its pods.

    The values come from the status of the TApp alone.
    """
    tiles = {
        row.id: {"state": row.state, "kind": _kind_from_status(row), "template": row.template}
        for row in rows_of_status(observed)
    }
    notes = in_page_words([observed.unread[PODS], *sentences_of_status(observed)])
    return {"tiles": tiles, "head": {"replicas": len(tiles), "notes": notes}}


def model_of(view: Inspection, entries: Iterable[HistoryEntry]) -> Model:
    """Returns the values that the page shows of a TApp: instances, budget, templates, history,
    notices.

    `entries` are the revisions of its templates, oldest first.
    """
    plan, tapp, spec = view.plan, view.observed.tapp, spec_of(view.observed.tapp)
    known, document = Progress(view), state_document(view)
    kinds = _kinds(view)
    copies, users = canaries.canary_copies(tapp), template_users(spec)
    kept = {id for ids in plan.partition.kept.values() for id in ids} & view.cases.keys()
    stuck, entries = banner(view, known), [*entries]
    runs = _instances_by_revision(view, entries)
    # If there is a banner, it already names the waiting instances and their reasons.
    waiting = [] if stuck.sentence else document["waits"]
    waits = [about(each["instances"], each["message"]) for each in waiting]
    refused = [f"{each['type']}: {each['message']}" for each in document["refused"]]
    unread, left = document["unread"].values(), reminders(view)
    notes = [view.idle, *waits, *refused, *document["events"], *unread, *left]
    vain = without_effect(view, entries)
    return {
        "head": {
            # The page shows the name of the TApp above the headline already.
            "headline": headline(view).removeprefix(f"{view.namespace}/{view.name}: "),
            "line": in_page_words(known.line(None)),
            "stuck": in_page_words(stuck.sentence),
            "words": in_page_words(stuck.words),
            "next": next_steps(view, vain),
            "paused": known.paused,
            "going": deletion_message(tapp),
            "replicas": spec.replicas,
            "notes": in_page_words([each for each in notes if each]),
        },
        "budget": budget_model(view),
        "vain": vain,
        "partition": {"size": plan.partition.size, "kept": sorted(kept)},
        "moving": [[text, id_list(ids)] for text, ids in known.progressing.items()],
        "templates": [
            {
                "name": name, "images": _images(spec.find_template(name)),
                "canary": copies.get(name, ""), "ids": id_list(users.get(name, [])),
            }
            for name in dict.fromkeys([spec.default_name, *users, *spec.template_pool])
        ],
        "history": [
            {
                "number": each.number, "template": each.template, "hash": each.short_hash,
                "created": each.created, "cause": each.cause, "changed": each.summary,
                "current": each.in_effect, "ids": id_list(runs.get(each.number, [])),
            }
            for each in reversed(entries)
        ],
        "tiles": {each["id"]: {**each, "kind": kinds[each["id"]]}
                  for each in document["instances"]},
    }  # fmt: skip


def _instances_by_revision(
    view: Inspection, entries: list[HistoryEntry]
) -> Mapping[int, list[int]]:
    """Returns revision number -> numbers of the instances whose pods were created from it.

    A pod has a label with the hash of its template, which does not depend on the values. Several
    revisions can have this hash. A kept instance then counts for the revision at which the
    partition keeps it, and any other instance for the newest. `entries` are the revisions in the
    history, oldest first.
    """
    newest = {each.hash: each.number for each in entries}
    newest_of_template = {(each.template, each.hash): each.number for each in entries}
    kept = {id: each.number for each in entries for id in numbers(each.kept)}
    found = list[tuple[int, int]]()
    for id, case in view.cases.items():
        pod = case.instance.pod
        digest = "" if pod is None else label_of(pod) or ""
        if digest in newest:
            own = newest_of_template.get((case.instance.template_name, digest), newest[digest])
            found.append((kept.get(id, own), id))
    return grouped(found)


def _kinds(view: Inspection) -> Mapping[int, str]:
    found = {}
    for id, case in view.cases.items():
        instance = case.instance
        hold, stands = instance.pod and instance.pod.spec.hold, view.standings[id].standing
        if stands is Standing.BLOCKED:
            found[id] = "bad"
        elif hold and hold.reason:
            found[id] = "held"
        elif stands is Standing.PROGRESSING:
            found[id] = "moving"
        elif instance.killed:
            found[id] = "stopped"
        elif instance.kept:
            found[id] = "kept"
        else:
            found[id] = "ok" if instance.updated or not instance.should_run else "old"
    return found


def _images(template: Document | None) -> dict[str, str]:
    containers = ((template or {}).get("spec") or {}).get("containers") or []
    return {str(each.get("name")): str(each.get("image", "")) for each in containers}


def explanation_of(
    view: Inspection, id: int, events: Iterable[Document], entries: Iterable[HistoryEntry]
) -> Model:
    """Returns the explanation of one instance: its decision, containers, Events and next steps.

    Args:
        view: the inspection of the TApp.
        id: the number of the instance.
        events: the Events about the instance's pod. If there are none, the Events of type Warning
            in the inspection are used.
        entries: the revisions of the TApp's templates, oldest first.
    """
    pod = view.pod(id) or {}
    known = (pod.get("status") or {}).get("containerStatuses") or []
    images = _images(pod)
    containers = [
        f"{each.get('name')}: {images.get(each.get('name'))}, "
        + ", ".join(each.get("state") or {})
        + f", {'' if each.get('ready') else 'not '}ready, {number} {plural(number, 'restart')}"
        for each in known
        for number in [each.get("restartCount", 0)]
    ]
    found: Model = instance_documents(view, [id])[0]
    hold = explain_instances(view, [id])[0].hold.removesuffix("; ")
    return found | {
        "cause": in_page_words(instance_banner(view, id)),
        "message": in_page_words(found["message"]),
        "next": instance_steps(view, id, [*entries]),
        # If no text follows "hold: ", the verdict contains the reason of the hold already.
        "hold": hold.removesuffix("hold: "),
        "containers": in_page_words([*containers, *found["containers"]]),
        "events": [describe(each, view.plan.now) for each in newest(events)] or found["events"],
    }


def timeline_entry(event: Document) -> Model:
    """Returns the entry in the page's timeline for an Event of the TApp.

    The keys of the result are the names of the parameters of `FollowedTApp.add_to_timeline`.
    """
    count = f" ({event_count(event)} times)" if event_count(event) > 1 else ""
    text = f"{event.get('reason')}: {' '.join(str(event.get('message') or '').split())}{count}"
    return {"text": text, "key": event["metadata"]["uid"], "at": last_seen(event)}


def tile_changes(
    before: Mapping[int, Model] | None, after: Mapping[int, Model]
) -> Iterator[tuple[str, str]]:
    """Yields the changes of the instances' tiles on the page since the last computation of the
    model.

    Each result has the numbers of the instances whose tiles have changed in the same way, such as
    `0-3,7`, and the text of that change.

    Args:
        before: instance number -> its tile at the last computation. None at the first computation,
            so that no tile has changed.
        after: instance number -> its tile now.
    """
    known = after if before is None else before
    texts = ({id: _tile_text(tile) for id, tile in tiles.items()} for tiles in (known, after))
    for ids, old, new in grouped_changes(*texts):
        yield ranges(ids), f"{old or 'none'} → {new or 'none'}"


def _tile_text(tile: Model) -> str:
    return " ".join(str(tile[key]) for key in ("state", "ready", "image") if tile.get(key))
