"""`kubectl tapp why`: explains the decision of the service about each instance."""

from kubectl_tapp.base.arguments import read_ids
from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.printed import formatted
from kubectl_tapp.cluster.access import EVENTS
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.options import Ids, Name, Output
from tapp.words.ranges import id_list


def why(session: Session, name: Name, ids: Ids = None, output: Output = None) -> None:
    """Explain the state of instances in detail.

    The explanation has the reason, the errors of containers, and the Events of the last hour.
    """
    from kubectl_tapp.decide.inspection import inspect  # noqa: PLC0415
    from kubectl_tapp.show.documents import why_document  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.show.why import why_lines  # noqa: PLC0415

    observed = session.cluster.observe(name, events=True)
    everyone = not ids or ids == ["all"]
    found = inspect(session.cluster, observed, session.now())
    chosen = list(found.cases) if everyone else _chosen(ids or [], list(found.cases))
    found.obstacles.limit_lookups_to(chosen)
    if EVENTS in found.observed.unread:
        session.note(f"note: {found.observed.unread[EVENTS]}")
    if output is not None:
        session.say(formatted(why_document(found, chosen), output))
        return
    for line in why_lines(found, chosen, everyone=everyone):
        session.say(line)


def _chosen(texts: list[str], known: list[int]) -> list[int]:
    """Returns the instance numbers that the user has typed, such as `0-3,7`.

    `known` are all instances, including terminating ones outside spec.replicas. Raises UsageError
    if an instance is not one of them.
    """
    asked = read_ids(texts, max(known, default=-1) + 1)
    missing = sorted(set(asked) - set(known))
    if missing:
        raise UsageError(
            f"there is no instance {id_list(missing)}: the instances are {id_list(known)}"
        )
    return asked
