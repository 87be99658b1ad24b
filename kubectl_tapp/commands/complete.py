"""Finds words for shell completion, such as names of TApps. Errors are ignored, because a shell
cannot show them.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import typer

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.global_options import GLOBAL_OPTIONS
from kubectl_tapp.cluster.access import NAMESPACES, TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import Program
from kubectl_tapp.cluster.session import Session

_SECONDS = 3.0  # The time limit of kubectl after the user has pressed the tab key
Offer = Callable[[typer.Context, list[str], str], list[str]]


def _cluster(ctx: typer.Context) -> ClusterAccess:
    """Returns the access to the cluster that the options typed so far select, such as
    `--context`.
    """
    session = next(
        (found for at in _contexts(ctx) if isinstance(found := at.obj, Session)), Session()
    )
    for at in reversed(_contexts(ctx)):
        session = session.with_options(**{name: at.params.get(name) for name in GLOBAL_OPTIONS})
    return replace(session, runner=session.runner or Program(_SECONDS)).cluster


def _contexts(ctx: Any) -> list[Any]:
    found = []
    while ctx is not None:
        found.append(ctx)
        ctx = ctx.parent
    return found


def offer(find: Callable[[ClusterAccess, dict[str, Any]], Iterable[str]]) -> Offer:
    """Returns a completion callback for typer, which offers no words if an error occurs.

    `find` gets the cluster and the arguments typed so far, and returns the words to offer.
    """

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


names = offer(lambda cluster, _: cluster.list_names(TAPPS))
namespaces = offer(lambda cluster, _: cluster.list_names(NAMESPACES))
contexts = offer(
    lambda cluster, _: cluster.kubectl("config", "get-contexts", "--output=name").out.split()
)
ids, templates = offer(_ids), offer(_templates)
