"""Starts, promotes and aborts canaries: templates that some instances run before the others.

`check_named_instances` and `pick_instances` choose the instances. `find_canary` finds an existing
canary, `promoted` and `aborted` end it. `set image --canary` copies a template into the pool. An
annotation of the TApp records the copy and its original, so that any user can end the canary
without typing these names. The end of the canary removes the copy from the pool. A template that
the author of the TApp put into the pool stays there.
"""

import json
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from kubectl_tapp.base.arguments import read_share, template_users
from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.words import instances_phrase, plural
from kubectl_tapp.edit.edits import (
    drop,
    put,
    spec_of,
    template_content,
    template_path,
    with_entries,
)
from tapp.declared.model import TAppSpec
from tapp.plan import Plan
from tapp.words.ranges import id_list
from tapp.words.vocabulary import CANARIES


@dataclass(frozen=True)
class Canary:
    """A canary: a template that some instances run instead of another template, to try it."""

    name: str
    base: str  # the name of the template that the canary replaces
    ids: list[int]  # the numbers of the instances that run the canary, sorted
    # True if the template was copied for the canary, so that the end of the canary removes it
    is_copy: bool


def with_copy_note(tapp: Document, name: str, base: str) -> Document:
    """Returns the TApp with a note in an annotation: template `name` is a copy of `base` for a
    canary.
    """
    return _with_copies(tapp, canary_copies(tapp) | {name: base})


def canary_copies(tapp: Document) -> dict[str, str]:
    """Returns the templates that were copied for canaries: name of the copy -> name of the
    original.

    An annotation of the TApp records the copies. Entries that are not valid, or whose template is
    no longer in the pool, are left out.
    """
    text = (tapp["metadata"].get("annotations") or {}).get(CANARIES)
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    items = found.items() if isinstance(found, dict) else ()
    pool = spec_of(tapp).template_pool
    return {name: base for name, base in items if isinstance(base, str) and name in pool}


def left_over(tapp: Document) -> list[str]:
    """Returns a sentence for each copy that was made for a canary and that no instance runs any
    more.

    No other output mentions such a copy. It is left over, for example, after the canary's instances
    were scaled away or got another template by hand. Templates that the author put into the pool
    are left out: a pool may have templates for later.
    """
    users = template_users(spec_of(tapp))
    return [
        f"canary: no instance uses template {name!r}, a copy of {base!r} for a canary; "
        f"{tapp_command(tapp, 'abort', '--template', name)} removes it"
        for name, base in canary_copies(tapp).items()
        if not users.get(name)
    ]


def _with_copies(tapp: Document, notes: dict[str, str]) -> Document:
    path = ("metadata", "annotations", CANARIES)
    return put(tapp, path, json.dumps(notes, sort_keys=True)) if notes else drop(tapp, path)


def find_canary(tapp: Document, template: str | None = None, base: str | None = None) -> Canary:
    """Returns one canary of the TApp.

    Raises UsageError if there is no canary, or if several would fit.

    Args:
        tapp: the TApp.
        template: the name of the canary's template; None for the only canary of the TApp.
        base: the template that the canary replaces. If it is None, the original of a copy is used,
            and for other canaries the template that all other instances run.
    """
    spec, notes = spec_of(tapp), canary_copies(tapp)
    users = template_users(spec)
    name = template if template is not None else _only_canary(tapp, spec, users)
    template_content(spec, name)
    given = base if base is not None else notes.get(name)
    instead = given if given is not None else _replaced_template(spec, users, name)
    template_content(spec, instead)
    if instead == name:
        raise UsageError(f"template {name!r} is not a canary: all other instances run it, too")
    if name == spec.default_name:
        raise UsageError(f"template {name!r} is not a canary: it is the default template")
    return Canary(name, instead, users.get(name, []), name in notes)


def candidates(tapp: Document) -> list[str]:
    """Returns the names of the templates that may be canaries; empty if there is no canary.

    A copy is a template that `set image --canary` has copied into the pool. The result is the first
    of these lists that is not empty:

    - the copies that at least one instance runs,
    - all copies, although no instance runs them,
    - the templates that instances run, without the default template and the rolling template.
    """
    spec, notes = spec_of(tapp), canary_copies(tapp)
    users = template_users(spec)
    # The default and the rolling template are not canaries, even if only some instances run them.
    usual = (spec.default_name, spec.rolling_name)
    others = [name for name in users if name not in usual and spec.find_template(name)]
    return [name for name in notes if name in users] or [*notes] or others


def _only_canary(tapp: Document, spec: TAppSpec, users: dict[str, list[int]]) -> str:
    """Returns the template name of the only canary; raises UsageError unless there is exactly one.

    `users` maps template names to the instances that run them.
    """
    found = candidates(tapp)
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"{tapp['metadata']['name']} has no canary: no instance runs another template"
        raise UsageError(f"{message} than {spec.default_name!r}")
    those = ", ".join(
        f"{name!r} ({instances_phrase(ids) if (ids := users.get(name)) else 'no instance'})"
        for name in found
    )
    raise UsageError(f"there are several canaries: {those}; name one with --template")


def _replaced_template(spec: TAppSpec, users: dict[str, list[int]], name: str) -> str:
    found = [each for each in users if each != name and spec.find_template(each)]
    if len(found) > 1:
        those = ", ".join(f"{each!r} ({instances_phrase(users[each])})" for each in found)
        message = f"the other instances run {those}: name with --base which one {name!r} replaces"
        raise UsageError(message)
    return found[0] if found else spec.default_name


def promoted(tapp: Document, canary: Canary) -> Document:
    """Returns the TApp after a promotion: all instances get the content of the canary's template.

    The base template gets this content, and the canary ends. The pods of the canary's instances are
    not updated, because they run this content already.
    """
    spec = spec_of(tapp)
    body = template_content(spec, canary.name)
    return aborted(put(tapp, template_path(spec, canary.base), body), canary)


def aborted(tapp: Document, canary: Canary) -> Document:
    """Returns the TApp after the end of a canary: its instances run the base template again.

    A template that was copied for the canary is removed from the pool, unless it is the rolling
    template.
    """
    spec = spec_of(tapp)
    entry = None if canary.base == spec.default_name else canary.base
    named: Document = (tapp.get("spec") or {}).get("templates") or {}
    mine = [key for key, template in named.items() if template == canary.name]
    tapp = with_entries(tapp, "templates", dict.fromkeys(mine, entry))
    if not canary.is_copy:
        return tapp
    if canary.name != spec.rolling_name:
        tapp = drop(tapp, ("spec", "templatePool", canary.name))
    rest = {name: base for name, base in canary_copies(tapp).items() if name != canary.name}
    return _with_copies(tapp, rest)


def check_named_instances(
    plan: Plan, template: str, ids: list[int], base: str | None = None
) -> str:
    """Checks the instances that the user has named for a canary, and returns a sentence for the
    user about this choice.

    Raises UsageError if an instance is stopped, has finished, or runs a wrong template.

    Args:
        plan: the decisions of the service, which tell the state of the instances.
        template: the template that the instances will run.
        ids: the numbers of the named instances.
        base: if not None, each instance must now run this template, or already run `template`.
    """
    spec = plan.world.tapp.spec
    chosen = [each for each in plan.instances if each.id in set(ids)]
    for word, those in (
        ("stopped", [each.id for each in chosen if each.killed]),
        ("finished", [each.id for each in chosen if not each.killed and not each.should_run]),
    ):
        if those:
            are = "is" if len(those) == 1 else "are"
            raise UsageError(
                f"{instances_phrase(those)} {are} {word} and would not run the canary: name other "
                "instances"
            )
    others = [id for id in ids if base and spec.template_name(id) not in (base, template)]
    if others:
        name = spec.template_name(others[0])
        run = "runs" if len(others) == 1 else "run"
        message = f"{instances_phrase(others)} of --canary {run} template {name!r}, not {base!r}"
        raise UsageError(f"{message}; name with --template the template to copy")
    broken = [id for id in ids if id not in plan.available]
    kind = f"not available: {id_list(broken)}" if broken else "all available"
    total = sum(each.should_run for each in plan.instances)
    share = f"{len(ids)} of {total} {plural(total, 'instance')}"
    return f"Canary: {instances_phrase(ids)}, as named ({share}; {kind})"


def pick_instances(
    plan: Plan, template: str, share: str, base: str | None = None
) -> tuple[list[int], str]:
    """Picks the instances of a canary.

    Returns the sorted numbers of the picked instances, and a sentence that explains the choice.
    Available instances are preferred, because a broken pod says nothing about the new template.
    Among these, instances on different nodes are preferred, because the failure of one node says
    nothing about the template either. Then instances with high numbers are preferred, because a
    later rollout reaches them last.

    Args:
        plan: the decisions of the service, which tell the state of the instances.
        template: the template that the instances will run. Instances that run it already count, so
            a share of 30% after 10% picks only another 20%.
        share: a number, or a percentage of all instances that should run.
        base: if not None, only instances that run this template now are picked.

    Raises UsageError if `share` is not a share of these instances.
    """
    spec = plan.world.tapp.spec
    running = [
        each
        for each in plan.instances
        if each.should_run and (base is None or spec.template_name(each.id) in (base, template))
    ]
    wanted = read_share(share, len(running))
    have = [each.id for each in running if spec.template_name(each.id) == template]
    node = {each.id: each.pod.node if each.pod else "" for each in running}
    free = sorted(set(node) - set(have), reverse=True)
    ids = _pick_order(free, node, have, plan.available)[: max(wanted - len(have), 0)]
    of = wanted, len(running)
    return sorted(ids), _explanation(plan, ids, have, of, {node[id] for id in ids})


def _pick_order(
    free: list[int], node: dict[int, str], have: list[int], available: Collection[int]
) -> list[int]:
    """Returns the instances of `free` in the order in which a canary picks them.

    Available instances come first. Within each group, instances are sorted by a key. The key of the
    n-th instance on a node is n plus the number of instances there that run the template already.
    Sorting by this key spreads the picks over the nodes, without comparing all nodes for each pick.

    Args:
        free: the instances that may be picked, highest number first.
        node: instance number -> the name of its node.
        have: the instances that run the template already.
        available: the instances that are available.
    """
    taken = Counter(node[id] for id in have)
    turns: list[tuple[bool, int, int]] = []
    for broken in (False, True):
        for id in free:
            if (id not in available) is broken:
                turns.append((broken, taken[node[id]], -id))
                taken[node[id]] += 1
    return [-negative for _, _, negative in sorted(turns)]


def _explanation(
    plan: Plan, ids: list[int], have: list[int], of: tuple[int, int], nodes: set[str]
) -> str:
    wanted, total = of
    has = "has" if len(have) == 1 else "have"
    before = f"{instances_phrase(have)} already {has} it; " if have else ""
    share = f"{wanted} of {total} {plural(total, 'instance')}"
    if not ids:
        return f"Canary of {share}: {before}no instance is picked"
    broken = [id for id in ids if id not in plan.available]
    count = len({node for node in nodes if node})
    where = f"on {count} {plural(count, 'node')}" if count else "on no node yet"
    kind = f"not available: {id_list(broken)}" if broken else "all available"
    order = "chosen from the highest number down"
    picked = f"{instances_phrase(ids)} picked ({kind}, {where}, {order})"
    return f"Canary of {share}: {before}{picked}"
