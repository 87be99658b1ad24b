"""Picks the instances that try a template first."""

from collections import Counter
from collections.abc import Collection

from kubectl_tapp.base.arguments import read_share
from kubectl_tapp.base.plural import plural
from tapp.plan import Plan
from tapp.words.ranges import some


def pick(plan: Plan, template: str, share: str, base: str | None = None) -> tuple[list[int], str]:
    """Chooses instances so that a share of all that should run has a template.

    Those that have it already count: 30% after 10% adds to them. Available ones first, because a
    broken one tells nothing of the template; then the node with the fewest of them, because a
    node's trouble is not the template's; then the highest number, which a roll-out of the others
    reaches last.

    Args:
        plan: the TApp as it is.
        template: the name of the template.
        share: `3` or `10%`, of the instances that should run.
        base: pick only of those that run this template now; None for all.

    Returns:
        Those that get the template now, ascending; and a sentence that says why these.

    Raises:
        CommandError: `share` is none.
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
    ids = _spread(free, node, have, plan.available)[: max(wanted - len(have), 0)]
    of = wanted, len(running)
    return sorted(ids), _why(plan, ids, have, of, {node[id] for id in ids})


def _spread(
    free: list[int], node: dict[int, str], have: list[int], available: Collection[int]
) -> list[int]:
    """All that are free, in the order in which they are picked.

    The n-th of a node has as many before it as those that have the template and n - 1: so each
    one's turn is known without a look at all of them for each pick.
    """
    taken = Counter(node[id] for id in have)
    turns: list[tuple[bool, int, int]] = []
    for broken in (False, True):
        for id in free:
            if (id not in available) is broken:
                turns.append((broken, taken[node[id]], -id))
                taken[node[id]] += 1
    return [-negative for _, _, negative in sorted(turns)]


def _why(plan: Plan, ids: list[int], have: list[int], of: tuple[int, int], nodes: set[str]) -> str:
    wanted, total = of
    before = f" {some(have)} already {'has' if len(have) == 1 else 'have'} it;" if have else ""
    if not ids:
        return f"Canary: {wanted} of {total}:{before} nobody is picked"
    broken = [id for id in ids if id not in plan.available]
    count = len({node for node in nodes if node})
    where = f"on {count} {plural(count, 'node')}" if count else "on no node yet"
    kind = f"not available: {some(broken)}" if broken else "all available"
    order = "highest numbers first"
    return f"Canary: {wanted} of {total}:{before} {some(ids)} picked ({kind}, {where}, {order})"
