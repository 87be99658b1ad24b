"""`kubectl tapp plan`: forecasts what an edit would do, and writes nothing."""

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.plan_options import PlanOptions


def plan(session: Session, options: PlanOptions) -> int:
    """Foretell an edit: to whom it does what, why, in which order, how long. Nothing is written."""
    from kubectl_tapp.commands import planning  # noqa: PLC0415 - it costs start time

    return planning.plan(session, options)
