"""Checks the safety properties of a sync (docs/guarantees.md) against its request and response.

`check` is the entry point. All functions read JSON documents: Metacontroller's request, the hook's
response, and sometimes the response of `/plan`. The checks share no decisions with the service;
only the merge, the comparison of quantities and the restart rules are the same code. Unit,
property, scenario and real-cluster tests use them.
"""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from simulator.api.apply import LAST_APPLIED
from tapp.kube.resources import compare
from tests.conditions import contradictions
from tests.evictions import too_many_evictions, wrong_budgets
from tests.holds import touched_on_hold
from tests.hook_calls import (
    BESIDE,
    KEYS,
    applied,
    available,
    bare,
    claim_templates,
    claims_are_applied,
    content_of,
    declares_revisions,
    desired,
    drains,
    leaves,
    number,
    observed,
    record_of,
    resolved,
    rolling_name,
    serves_behind_a_gate,
    should_run,
    storage,
    template,
    template_name,
    without_size,
)
from tests.kept_instances import kept_in, kept_template, kept_wrongly
from tests.metacontroller_merge import Merged, merged
from tests.prepull import is_puller, stopped_before_pull
from tests.rollout_order import out_of_order, out_of_turn, untimely

Document = dict[str, Any]

GONE = {"Delete", "Recreate"}
TOUCHED = {"UpdateInPlace", "Adopt", "Mark"}
SYSTEM = {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"}


# The field of a claim that names its VolumeAttributesClass.
ATTRIBUTES = "volumeAttributesClassName"


class ViolationError(AssertionError):
    """A response of the hook violates a safety property."""


def check(
    request: Document, answer: Document, plan: Document | None = None, now: float | None = None
) -> None:
    """Checks all properties of one sync.

    Args:
        request: the request to the hook.
        answer: the response of the hook.
        plan: the response of `/plan` to the same request, or None if it is not known.
        now: seconds since the epoch at the request, for `minReadySeconds`; None if unknown.

    Raises:
        ViolationError: a property is violated; the message names the first one.
    """
    want = desired(answer, "Pod")
    pods = observed(request, "Pod")
    after = {name: merged(request, pods[name], want[name]) for name in pods if name in want}
    well_formed(request, answer)
    conditions_agree(request, answer)
    p2_budget_is_respected(request, after, now)
    late = untimely(request, answer, now)
    _hold(not late, late)
    wrong = kept_wrongly(request, answer)
    _hold(not wrong, wrong)
    early = out_of_order(request, answer, after, now)
    _hold(not early, early)
    stopped = stopped_before_pull(request, answer)
    _hold(not stopped, "stopped for images that are not there:", stopped)
    cut_off = touched_on_hold(request, want, after, now)
    _hold(not cut_off, *cut_off)
    p5_every_update_is_legal(request, answer, after)
    p5_claims_change_only_size_and_class(request, answer)
    p6_no_claim_is_omitted_unless_policy(request, answer)
    p6_no_pod_is_omitted_without_reason(request, answer, plan)
    p6_no_revision_is_omitted_without_reason(request, answer)
    p6_services_are_the_instances_own(request, answer)
    evicted = too_many_evictions(request, answer, after, now)
    _hold(not evicted, "P2:", evicted)
    budgets = wrong_budgets(request, answer)
    _hold(not budgets, "P6: PodDisruptionBudget", budgets)
    p8_the_same_answer_again_changes_nothing(after)
    if plan is not None:
        p4_a_pod_is_touched_only_for_a_reason(request, after, plan)
        overtaken = out_of_turn(request, plan)
        _hold(not overtaken, overtaken)


def writes(request: Document, answer: Document) -> list[str]:
    """Returns the writes that Metacontroller would make, as texts such as `create Pod/a` or `delete
    Pod/b`.

    An empty list means that the response changes nothing but the status.
    """
    result = []
    claims = ["PersistentVolumeClaim"] if claims_are_applied(request) else []
    updated = {"Pod", "Service", "PodDisruptionBudget", *claims}
    for kind in KEYS:
        have, want = observed(request, kind), desired(answer, kind)
        result += [f"create {kind}/{name}" for name in sorted(want.keys() - have.keys())]
        for name in sorted(have):
            if have[name]["metadata"].get("deletionTimestamp"):
                continue
            if name not in want:
                result.append(f"delete {kind}/{name}")
            elif kind not in updated:
                continue
            elif applied(request, have[name], want[name]) != have[name]:
                result.append(f"update {kind}/{name}")
    return result


# --- the properties ------------------------------------------------------------------------------


def well_formed(request: Document, answer: Document) -> None:
    """Checks that Metacontroller would accept the response.

    The response must have known keys only, its children must be complete, and no child may occur
    twice.
    """
    _hold(answer.keys() <= {"status", "children", "resyncAfterSeconds", "finalized"}, answer.keys())
    _hold(isinstance(answer["status"], dict), "status is no object")
    _hold(isinstance(answer["children"], list), "children is no list")
    _hold("finalized" not in answer or request["finalizing"], "finalized on a sync")
    _hold(answer.get("resyncAfterSeconds", 1) > 0, "resyncAfterSeconds must be positive")
    names = Counter((child["kind"], child["metadata"]["name"]) for child in answer["children"])
    _hold(max(names.values(), default=1) == 1, "children twice:", names)
    for child in answer["children"]:
        meta = child["metadata"]
        group = KEYS.get(child["kind"], "").partition(".")[2]
        _hold(child["apiVersion"] == group, child)
        home = request["parent"]["metadata"]["namespace"]
        _hold(meta.get("namespace", home) == home, meta)
        _hold(not SYSTEM & meta.keys(), "system fields in", meta)
        _hold("status" not in child, f"status in {meta['name']}")
        _hold(LAST_APPLIED not in (meta.get("annotations") or {}), "last-applied is echoed")
    for path, value in leaves(answer["status"], "status"):
        _hold(value is not None and not isinstance(value, float), path, "is", value)


def conditions_agree(request: Document, answer: Document) -> None:
    """Checks that the conditions and the other fields of the new status do not contradict each
    other.

    The rules are in tests/conditions.py.
    """
    before = request["parent"].get("status") or {}
    if request["finalizing"] and answer["status"].get("conditions") == before.get("conditions"):
        return  # unchanged, and perhaps from an earlier release
    problems = contradictions(answer["status"])
    _hold(not problems, "; ".join(problems))


def p1_permuted_children_give_the_same_bytes(
    request: Document, post: Callable[[Document], bytes], seed: int = 0
) -> None:
    """P1: checks that the response depends neither on the order of the children nor on earlier
    calls.

    `post` sends a request and returns the response. `seed` chooses the order of the children.
    """
    first = post(request)
    _hold(post(request) == first, "the same call again is answered differently")
    shuffled = {}
    for kind, children in request["children"].items():
        items = list(children.items())
        random.Random(seed).shuffle(items)
        shuffled[kind] = dict(items)
    kinds = dict(reversed(shuffled.items()))
    _hold(post({**request, "children": kinds}) == first, "the order of children matters")


def p2_budget_is_respected(
    request: Document, after: dict[str, Merged], now: float | None = None
) -> None:
    """P2: checks that updates leave as many instances available as both budgets require.

    `after` has the observed pods that the response keeps, after Metacontroller's merge. If `now` is
    None, `minReadySeconds` is ignored.
    """
    if request["finalizing"]:
        return
    spec = request["parent"]["spec"]
    running, serving = should_run(request), available(request, now)
    taken: dict[bool, set[int]] = {True: set(), False: set()}
    for name, pod in observed(request, "Pod").items():
        id = number(request, name)
        if id is None or id not in serving:
            continue
        becomes = after.get(name)
        updated = becomes is not None and becomes.updates
        _hold(not updated or not serves_behind_a_gate(request, pod), f"{name} is not drained")
        if becomes is None or updated or drains(becomes.child):
            taken[template_name(spec, id) == rolling_name(spec)].add(id)
    strategy = spec.get("updateStrategy") or {}
    limits = {
        True: strategy.get("maxUnavailable", 1),
        False: (strategy.get("forceUpdate") or {}).get("maxUnavailable", "100%"),
    }
    left = len(serving)
    for rolling in (False, True):
        if taken[rolling]:
            left -= len(taken[rolling])
            budget = resolved(limits[rolling], len(running))
            _hold(budget is not None, f"{taken[rolling]} updated on budget {limits[rolling]!r}")
            least = len(running) - (budget or 0)
            _hold(left >= least, f"{taken[rolling]} updated: {left} < {least} stay available")
            _hold(not strategy.get("paused"), f"{taken[rolling]} updated while paused")


def p4_a_pod_is_touched_only_for_a_reason(
    request: Document, after: dict[str, Merged], plan: Document
) -> None:
    """P4: checks that a pod changes only by a decision that has a reason and a message.

    The decision's action must not be `Keep`. `after` has the observed pods that the response keeps,
    after Metacontroller's merge; `plan` is the response of `/plan`.
    """
    decisions = {item["id"]: item for item in plan["instances"]}
    for item in plan["instances"]:
        _hold(bool(item["reason"] and item["message"]), "no reason:", item)
    for name, becomes in after.items():
        if becomes.pod["metadata"].get("deletionTimestamp") or becomes.doubled:
            continue
        if becomes.changes:
            id = number(request, name)
            _hold(id in decisions, f"{name} changes though it is no instance's")
            action = decisions[id if id is not None else -1]["action"]
            _hold(action in TOUCHED, f"{name} changes on {action}")


def p5_every_update_is_legal(request: Document, answer: Document, after: dict[str, Merged]) -> None:
    """P5: checks that the API server accepts every update of a pod.

    `after` maps names of pods to the pods after Metacontroller's merge. The merge corrupts lists
    with duplicate merge keys. The condition DuplicateMergeKeys has to name pods with such lists;
    their updates are not checked.
    """
    conditions = {item["type"] for item in answer["status"].get("conditions") or []}
    for name, becomes in after.items():
        if becomes.pod["metadata"].get("deletionTimestamp"):
            continue
        problems = becomes.problems
        if problems and becomes.doubled:
            named = request["finalizing"] or "DuplicateMergeKeys" in conditions
            _hold(named or number(request, name) is None, f"{name}: duplicate keys, no condition")
        else:
            _hold(not problems, f"{name}: {problems}")


def p5_claims_change_only_size_and_class(request: Document, answer: Document) -> None:
    """P5, P6: checks that a claim changes nothing but its size and its VolumeAttributesClass.

    The claim must be bound. The size only grows, and its StorageClass must allow volume expansion.
    The class is removed only if no volume has it.
    """
    if not claims_are_applied(request):
        return
    want = desired(answer, "PersistentVolumeClaim")
    classes = (request.get("related") or {}).get("StorageClass.storage.k8s.io/v1") or {}
    growing = {name for name, item in classes.items() if item.get("allowVolumeExpansion") is True}
    for name, claim in observed(request, "PersistentVolumeClaim").items():
        if name not in want or claim["metadata"].get("deletionTimestamp"):
            continue
        after = applied(request, claim, want[name])
        if bare(after) == bare(claim):
            continue
        _hold(not request["finalizing"], f"claim {name} changes while its TApp goes")
        before, now = storage(claim), storage(after)
        grows, status = compare(now, before) > 0, claim.get("status") or {}
        _hold(grows or now == before, f"claim {name} asked for {before}, and now for {now}")
        same_size = {**after["spec"], "resources": claim["spec"]["resources"]}
        old_class, new_class = (each["spec"].get(ATTRIBUTES) for each in (claim, after))
        removed = old_class and not new_class
        kept = not removed or not status.get("currentVolumeAttributesClassName")
        _hold(kept, f"claim {name} loses the class that its volume has")
        _hold(
            without_class(same_size) == without_class(claim["spec"]),
            f"more than size and class of claim {name} change",
        )
        _hold(
            without_size(after["spec"]["resources"]) == without_size(claim["spec"]["resources"]),
            f"more than the size of claim {name} changes",
        )
        _hold(bare({**after, "spec": claim["spec"]}) == bare(claim), f"metadata of {name} changes")
        _hold(status.get("phase") == "Bound", f"{name} changes unbound")
        may_grow = claim["spec"].get("storageClassName") in growing
        _hold(not grows or may_grow, f"the class of {name} forbids it")


def without_class(spec: Document) -> Document:
    """Returns the spec of a claim without its VolumeAttributesClass."""
    return {key: value for key, value in spec.items() if key != ATTRIBUTES}


def p6_no_claim_is_omitted_unless_policy(request: Document, answer: Document) -> None:
    """P6: checks that a claim is deleted only if the retention policy says `Delete`, and after its
    pod.
    """
    spec = request["parent"].get("spec") or {}
    policy = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    pods = observed(request, "Pod")
    for name in observed(request, "PersistentVolumeClaim").keys() - desired(
        answer, "PersistentVolumeClaim"
    ):
        if request["finalizing"]:
            _hold(policy.get("whenDeleted") == "Delete", f"claim {name} is deleted")
            _hold(not pods, f"claim {name} is deleted before the pods are gone")
            continue
        _hold(policy.get("whenScaled") == "Delete", f"claim {name} is deleted")
        id = int(name.rpartition("-")[2])
        _hold(id >= spec.get("replicas", 1), f"claim {name} of a wanted instance is deleted")
        pod = f"{request['parent']['metadata']['name']}-{id}"
        _hold(pod not in pods, f"claim {name} is deleted before its pod is gone")


def p6_no_pod_is_omitted_without_reason(
    request: Document, answer: Document, plan: Document | None = None
) -> None:
    """P6: checks that a pod is deleted only for one of three reasons.

    The instance is not wanted any more, the pod has ended, or the instance's template exists, so
    that a new pod can be created. `plan` is the response of `/plan`, or None if it is not known.
    """
    if request["finalizing"]:
        if "deletionTimestamp" not in request["parent"]["metadata"]:
            changed = writes(request, answer)
            _hold(not changed, "handed over to another controller, and", changed)
        return
    spec, pods = request["parent"]["spec"], observed(request, "Pod")
    decisions = {item["id"]: item["action"] for item in (plan or {}).get("instances", [])}
    for name in pods.keys() - desired(answer, "Pod").keys():
        id = number(request, name)
        if is_puller(pods[name]):
            continue
        _hold(id is not None, f"{name} is no instance's, and is deleted")
        assert id is not None
        unwanted = id >= spec.get("replicas", 1)
        unwanted |= (spec.get("statuses") or {}).get(str(id)) == "Killed"
        ended = (pods[name].get("status") or {}).get("phase") in ("Succeeded", "Failed")
        finished = ended and not should_run(request) & {id}
        known = kept_template(request, answer["status"], id) is not None
        _hold(unwanted or finished or known, f"{name} is deleted, its template cannot be found")
        _hold(
            plan is None or decisions.get(id) in GONE, f"{name} goes, decided: {decisions.get(id)}"
        )


def p6_services_are_the_instances_own(request: Document, answer: Document) -> None:
    """P6: checks that each new Service selects the pod of its instance only.

    Services that the service has not created must neither change nor be deleted.
    """
    have, want = observed(request, "Service"), desired(answer, "Service")
    parent = request["parent"]
    for name, service in have.items():
        notes = service["metadata"].get("annotations") or {}
        if "spec" not in json.loads(notes.get(LAST_APPLIED, "{}")):
            _hold(name in want, f"Service {name} is somebody else's, and is deleted")
            same = applied(request, service, want[name])["spec"] == service["spec"]
            _hold(same, f"Service {name} is somebody else's, and changes")
        elif name not in want and not request["finalizing"]:
            spec, id = parent["spec"], number(request, name)
            killed = (spec.get("statuses") or {}).get(str(id)) == "Killed"
            killed &= (spec.get("serviceRetentionPolicy") or {}).get("whenKilled") == "Delete"
            surplus = id is not None and id >= spec.get("replicas", 1)
            alone = name not in observed(request, "Pod") and (killed or surplus)
            _hold(alone or not spec.get("serviceTemplate"), f"Service {name} is deleted")
    for name in want.keys() - have.keys():
        selector = want[name]["spec"]["selector"]
        id = number(request, name)
        own = {"controller-uid": parent["metadata"]["uid"], "tapp_instance_key": str(id)}
        _hold(selector == own, f"Service {name} selects {selector}")


def p6_no_revision_is_omitted_without_reason(request: Document, answer: Document) -> None:
    """P6: checks that a ControllerRevision is deleted only if it is the TApp's and enough newer
    ones exist.

    The revision that instances run now stays, unless another revision of its template has at least
    the same number.
    """
    have = observed(request, "ControllerRevision")
    want = desired(answer, "ControllerRevision")
    made = [item for name, item in want.items() if name not in have]
    for name in have.keys() & want.keys():
        _hold(want[name].keys() == {"apiVersion", "kind", "metadata"}, f"{name} is rewritten")
    if request["finalizing"]:
        _hold(not made, f"revisions are made at the end: {made}")
        return
    spec, gone = request["parent"]["spec"], have.keys() - want.keys()
    if not declares_revisions(request):
        _hold(not gone and not made, f"without a declaration: -{gone} +{made}")
        return
    limit = spec.get("revisionHistoryLimit", 10)
    _hold(limit or not made, f"made without a history: {made}")
    ours = {name: item for name, item in have.items() if all(record_of(item))}
    early = Counter[str]()
    for name in gone:
        _hold(name in ours, f"{name} is none of ours, and goes")
        _hold(not have[name]["metadata"].get("deletionTimestamp"), f"{name} goes already")
        others = [item for item in ours.values() if item is not ours[name]]
        newer = [item for item in others if item["revision"] >= ours[name]["revision"]]
        mine = [item for item in newer if record_of(item)[0] == record_of(ours[name])[0]]
        if any(content_of(item) == content_of(ours[name]) for item in newer):
            continue  # the same again, with a higher number
        if ours[name]["data"].get("template") == template(spec, record_of(ours[name])[0]):
            _hold(not limit or mine, f"{name} runs now, and goes")
        elif len(newer) < limit:
            _hold(mine, f"{name} goes, and only {len(newer)} are newer")
            early[record_of(ours[name])[0]] += 1  # the template may say the same in other words
    _hold(max(early.values(), default=1) == 1, f"too many go: {early}")
    again = [content_of(item) for item in made]
    stays = [name for name in want if name in ours and content_of(ours[name]) not in again]
    stays += [item["metadata"]["name"] for item in made]
    templates = len(spec.get("templatePool") or {}) + bool(spec.get("template"))
    # Revisions that a partition has kept until now are in use in the sync that ends it.
    before = kept_in(request["parent"].get("status") or {})
    kept = answer["status"].get("kept") or {*before.values()}
    most = 2 * templates + limit + (len(kept) + 1 if kept else 0)
    _hold(len(stays) <= most, f"{len(stays)} of {templates} templates")
    numbers = [item["revision"] for item in made]
    newest = max([item["revision"] for item in ours.values()], default=0)
    _hold(len(set(numbers)) == len(numbers), f"numbers twice: {numbers}")
    _hold(min(numbers, default=newest + 1) > newest, f"{numbers} are no higher than {newest}")
    for item in made:
        same = [one for one in ours.values() if content_of(one) == content_of(item)]
        _check_new_revision(spec, item, same)


def _check_new_revision(spec: Document, item: Document, same: Iterable[Document]) -> None:
    """Checks that a new revision contains the parts of the current spec, and nothing else.

    `item` is the new revision, and `same` are the existing revisions with the same content.
    """
    name, _ = record_of(item)
    kept = {**item["data"]}
    _hold(kept.pop("template") == template(spec, name), f"another template: {item}")
    for id, values in kept.pop("values", {}).items():
        _hold(values.items() <= spec["values"][id].items(), f"other values: {item}")
    defaults = kept.pop("defaultValues", {}).items()
    _hold(defaults <= (spec.get("defaultValues") or {}).items(), f"other values: {item}")
    beside = {key: kept.pop(key) for key in BESIDE if key in kept}
    _hold(_has_expected_parts(spec, beside, same), f"others than the spec has: {item}")
    _hold(not kept, f"more than a template and what is beside it: {item}")
    used = {template_name(spec, id) for id in range(spec.get("replicas", 1))}
    _hold(name in used, f"{name} is kept, and nobody runs it")


def _has_expected_parts(spec: Document, beside: Document, same: Iterable[Document]) -> bool:
    """Returns True if `beside`, the Service name and claim templates of a new revision, is right.

    These fields are right if they are absent, if they are those of the current spec, or if they are
    those of a revision in `same`.
    """
    had = [{key: one["data"][key] for key in BESIDE if key in one["data"]} for one in same]
    now = {"serviceName": spec.get("serviceName") or "", BESIDE[1]: claim_templates(spec)}
    return not beside or beside == now or beside in had


def p8_the_same_answer_again_changes_nothing(after: dict[str, Merged]) -> None:
    """P8: checks that applying a response twice changes nothing more than applying it once.

    `after` maps names of pods to the pods after the first application.
    """
    for name, becomes in after.items():
        _hold(becomes.doubled or becomes.stays, f"{name}: a second write")


def _hold(truth: object, *what: object) -> None:
    """Raises ViolationError unless `truth` is true.

    The message consists of the parts in `what`; it is formatted only if the error is raised.
    """
    if not truth:
        raise ViolationError(" ".join(map(str, what)))
