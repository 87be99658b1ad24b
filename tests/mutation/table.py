"""The patches: where, what is there, what is put there instead, and what that breaks.

Each old text must stand exactly once in its file; a test checks that, so a change of the code that
invalidates a patch is noticed at once.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """One way to break the code."""

    file: str
    old: str
    new: str
    breaks: str
    survives: str = ""
    """Why no test can notice it, or ""."""


MUTATIONS = (
    # --- the budget ---
    Mutation(
        "tapp/rollout.py",
        "if others >= limit.least:",
        "if others + 1 >= limit.least:",
        "one instance more than maxUnavailable is updated",
    ),
    Mutation(
        "tapp/rollout.py",
        "return ceil(should_run * percent / FULL)",
        "return should_run * percent // FULL",
        "percentages are rounded down: 10% of 3 never updates anything",
    ),
    Mutation(
        "tapp/rollout.py",
        "zip(groups, (budgets.force, budgets.rolling), strict=True)",
        "zip(groups, (budgets.rolling, budgets.force), strict=True)",
        "the two groups spend each other's budget",
    ),
    Mutation(
        "tapp/rollout.py",
        "groups[instance.template.name == rolling_name]",
        "groups[instance.template.name != rolling_name]",
        "instances are in the wrong group, and the rolling group goes first",
    ),
    Mutation(
        "tapp/rollout.py",
        "                available.discard(instance.id)",
        "                pass",
        "an instance that is taken down still counts as available",
    ),
    Mutation(
        "tapp/rollout.py",
        "    if instance not in available and instance not in serving.going_unseen:\n"
        "        return None\n",
        "",
        "a broken roll-out cannot be repaired by the next template (bug B2)",
    ),
    Mutation(
        "tapp/rollout.py",
        "    if serving.unsettled:\n",
        "    if False:\n",
        "a spec change in the middle of a roll takes instances on top of those just taken",
    ),
    Mutation(
        "tapp/rollout.py",
        "                if budgets.strategy.paused",
        "                if False",
        "`paused` is ignored",
    ),
    Mutation(
        "tapp/rollout.py",
        "    if limit.least is None:\n        return _hold",
        "    if False:\n        return _hold",
        "a budget that makes no sense is an internal error",
    ),
    Mutation(
        "tapp/plan.py",
        "should_run = sum([instance.should_run for instance in instances])",
        "should_run = spec.replicas",
        "killed and finished instances count in the base of the budget",
    ),
    Mutation(
        "tapp/plan.py",
        "should_run = wanted and not is_killed and status not in FINISHED",
        "should_run = wanted and not is_killed",
        "finished instances count in the base of the budget",
    ),
    Mutation(
        "tapp/plan.py",
        "            or pod.ready is not True\n",
        "            or pod.ready is False\n",
        "a pod whose readiness is unknown counts as available",
    ),
    Mutation(
        "tapp/plan.py",
        "            or instance.status is InstanceStatus.UPDATING\n",
        "",
        "an instance in an in-place update counts as available",
    ),
    Mutation(
        "tapp/plan.py",
        "(missing := min_ready_seconds - pod.ready_for(now)) > 0",
        "(missing := min_ready_seconds - pod.ready_for(now)) > min_ready_seconds",
        "minReadySeconds is ignored",
    ),
    Mutation(
        "tapp/plan.py",
        "    return not (quiet and seen == generation - 1)",
        "    return not quiet",
        "a spec that skipped a generation unseen is taken as settled",
    ),
    Mutation(
        "tapp/plan.py",
        "    available -= going_unseen\n",
        "",
        "a replaced pod that recovers unseen frees budget for another",
    ),
    Mutation(
        "tapp/rollout.py",
        " and instance not in serving.going_unseen",
        "",
        "a pod whose deletion failed is replaced whatever else is broken",
    ),
    Mutation(
        "tapp/plan.py",
        "or (instance.id in self.going_unseen and verdict.reason in BUDGET_REASONS)",
        "or False",
        "a replaced pod that recovers unseen frees budget at the second sync",
    ),
    # --- the verdicts ---
    Mutation(
        "tapp/judge.py",
        "    if not isinstance(instance.template, Unresolved):\n        return None\n"
        '    return Verdict(Action.KEEP, "TemplateNotFound"',
        "    if not isinstance(instance.template, Unresolved):\n        return None\n"
        '    return Verdict(Action.DELETE, "TemplateNotFound"',
        "a typo in a template name deletes pods (bug B1)",
    ),
    Mutation(
        "tapp/judge.py",
        "    if isinstance(instance.template, Unresolved):\n        return _unresolved(instance)\n",
        "",
        "a completed pod is deleted although its template cannot be found",
    ),
    Mutation(
        "tapp/judge.py",
        "    if instance.pod is None or not instance.pod.odd:",
        "    if True:",
        "a pod that cannot be read is judged all the same",
    ),
    Mutation(
        "tapp/judge.py",
        "    if _is_ours(look):",
        "    if True:",
        "pods of the old controller are recreated instead of adopted",
    ),
    Mutation(
        "tapp/judge.py",
        "            and describes(template.labels, look.labels)\n",
        "",
        "a pod with other labels than its template is adopted as up to date",
    ),
    Mutation(
        "tapp/judge.py",
        "        if state is not None and state.terminated is not None:\n",
        "        if False:\n",
        "a container that has ended for good is updated in place and never starts again",
    ),
    Mutation(
        "tapp/judge.py",
        ' if look.restart_policies[name] != "Always"]',
        "]",
        "a container in a crash loop is recreated instead of updated in place",
    ),
    Mutation(
        "tapp/judge.py",
        "        if look.images.get(name) != image and look.template_images.get(name) != image",
        "        if look.images.get(name) != image",
        "an image that admission rewrote is taken for a change",
    ),
    Mutation(
        "tapp/judge.py",
        "    if never_migrate:\n        return False\n",
        "",
        "`neverMigrate` is ignored",
    ),
    Mutation(
        "tapp/judge.py",
        'policy == "Always" or (policy == "OnFailure" and pod.phase == "Failed")',
        'policy in ("Always", "OnFailure")',
        "an instance that succeeded under OnFailure is run again",
    ),
    Mutation(
        "tapp/judge.py",
        "    if pod.refused_by_kubelet:\n        return True\n",
        "",
        "a pod that the kubelet refused is never replaced",
    ),
    Mutation(
        "tapp/judge.py",
        "return InstanceStatus(remembered) if remembered in FINISHED else",
        "return InstanceStatus(remembered) if False else",
        "a finished instance whose pod is gone is run again",
    ),
    Mutation(
        "tapp/plan.py",
        "instance.remove_finished = remembered.get(str(instance.id)) == instance.status",
        "instance.remove_finished = True",
        "a finished pod goes before the status remembers its end",
    ),
    Mutation(
        "tapp/plan.py",
        "    if app is AppStatus.RUNNING and options.delete_pod_after_app_finish:",
        "    if options.delete_pod_after_app_finish:",
        "finished pods are never removed",
    ),
    # --- what is answered ---
    Mutation(
        "tapp/render.py",
        "    if projected is not None:\n        return projected\n",
        "    if template is not None:\n        return {**projected, 'spec': template.spec}\n",
        "an existing pod is answered with its raw template",
    ),
    Mutation(
        "tapp/children.py",
        "    children += [kept_child(pod, None) for pod in plan.world.foreign]\n",
        "",
        "pods that are no instance's are deleted",
    ),
    Mutation(
        "tapp/render.py",
        '    if record is not None:\n        metadata["annotations"][IN_PLACE_UPDATE] = record\n',
        "",
        "nothing tells whether an in-place update has finished",
    ),
    Mutation(
        "tapp/render.py",
        "    for name in images:\n        id = pod.container(name).container_id",
        "    for name in ():\n        id = pod.container(name).container_id",
        "the record forgets what the containers ran",
    ),
    Mutation(
        "tapp/render.py",
        "items = result.get(section) or []\n        result[section] = [\n            "
        '{**item, "image": mine.pop(item["name"])} if item.get("name") in mine else item\n'
        "            for item in items\n        ]",
        "items = result.get(section) or []\n        result[section] = [\n            "
        '{**item, "image": image} for item, image in zip(items, mine.values())\n        ]',
        "images are set by index instead of by name (bug B10)",
    ),
    Mutation(
        "tapp/render.py",
        'metadata["labels"] = {**_labels(template, instance), **uid}',
        'metadata["labels"] = {**metadata["labels"], **_labels(template, instance), **uid}',
        "labels that left the template stay on the pod (bug B11)",
    ),
    Mutation(
        "tapp/observe.py",
        "return status.container_id != ran.id or self.look.images.get(name) == ran.image",
        "return True",
        "an in-place update has finished before its container was restarted",
    ),
    Mutation(
        "tapp/observe.py",
        "return status.container_id != ran.id or self.look.images.get(name) == ran.image",
        "return status.container_id != ran.id",
        "an update that was rolled back unseen never finishes",
    ),
    Mutation(
        "tapp/observe.py",
        "return self.ready is not True or bool(self.unfinished_update)",
        "return bool(self.unfinished_update)",
        "an in-place update has finished before the pod is Ready",
    ),
    # --- claims ---
    Mutation(
        "tapp/claims.py",
        "number is not None and number >= spec.replicas and number not in with_pod",
        "number is not None and number >= spec.replicas",
        "a claim goes while its pod is still there",
    ),
    Mutation(
        "tapp/claims.py",
        'when_scaled == "Delete"',
        'when_scaled != "nothing"',
        "claims are deleted on scale-down without a policy that says so",
    ),
    Mutation(
        "tapp/render.py",
        '"uid": namespace_uid,',
        '"uid": tapp.metadata.uid,',
        "the Namespace does not own the claims, so they die with the TApp",
    ),
    Mutation(
        "tapp/children.py",
        "        if not uid:\n",
        "        if False:\n",
        "claims are made without the Namespace that protects them",
    ),
    # --- the end ---
    Mutation(
        "tapp/teardown.py",
        "finalized=not pods and (not delete_claims or not claims)",
        "finalized=not delete_claims or not claims",
        "finalized before the pods are gone",
    ),
    Mutation(
        "tapp/teardown.py",
        "    staying = claims if pods or not delete_claims else []",
        "    staying = [] if pods or delete_claims else claims",
        "claims go before the pods, or without a policy",
    ),
    Mutation(
        "tapp/teardown.py",
        "    if any(name in parent.metadata.finalizers for name in _GARBAGE_COLLECTOR):",
        "    if False:",
        "an orphaning deletion deletes the pods",
    ),
    # --- revisions ---
    Mutation(
        "tapp/revision.py",
        "hexdigest()[:20]",
        "hexdigest()[:16]",
        "an upgrade of the hook restarts every pod of every user",
    ),
    Mutation(
        "tapp/revision.py",
        'return field == "containers" or container.get("restartPolicy") == "Always"',
        "return True",
        "an init container's image is swapped in place, where nothing ever runs it (bug B8)",
    ),
    Mutation(
        "tapp/canonical.py",
        "        return not value and key in _ABSENT_WHEN_EMPTY",
        "        return not value",
        "`emptyDir: {}` is dropped from a template",
    ),
)
