"""Words to offer to the shell: nothing fails here, and what cannot be asked is not offered."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import typer

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.targets import TARGETS
from kubectl_tapp.cluster.access import NAMESPACES, TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import Program
from kubectl_tapp.cluster.session import Session

_SECONDS = 3.0  # The longest time that a person who presses the tab key waits
Offer = Callable[[typer.Context, list[str], str], list[str]]


def _cluster(ctx: typer.Context) -> ClusterAccess:
    """The cluster of the options that stand on the line so far."""
    session = next((found for at in _line(ctx) if isinstance(found := at.obj, Session)), Session())
    for at in reversed(_line(ctx)):
        session = session.narrowed(**{name: at.params.get(name) for name in TARGETS})
    return replace(session, runner=session.runner or Program(_SECONDS)).cluster


def _line(ctx: Any) -> list[Any]:
    found = []
    while ctx is not None:
        found.append(ctx)
        ctx = ctx.parent
    return found


def offer(find: Callable[[ClusterAccess, dict[str, Any]], Iterable[str]]) -> Offer:
    """A source of words that never fails: `find` gets the cluster and the arguments so far."""

    def found(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001
        try:
            words = list(find(_cluster(ctx), dict(ctx.params)))
        except (CommandError, KeyError, TypeError, ValueError):
            return []
        return [word for word in words if word.startswith(incomplete)]

    return found


def _ids(cluster: ClusterAccess, given: dict[str, Any]) -> Iterable[str]:
    replicas = cluster.get(TAPPS, given["name"])["spec"].get("replicas", 1)
    return ["all", *(str(id) for id in range(min(replicas, 1000)))]


def _templates(cluster: ClusterAccess, given: dict[str, Any]) -> Iterable[str]:
    spec = cluster.get(TAPPS, given["name"])["spec"]
    return sorted({"default", *(spec.get("templatePool") or {})})


names = offer(lambda cluster, _: cluster.names(TAPPS))
namespaces = offer(lambda cluster, _: cluster.names(NAMESPACES))
contexts = offer(
    lambda cluster, _: cluster.kubectl("config", "get-contexts", "--output=name").out.split()
)
ids, templates = offer(_ids), offer(_templates)
