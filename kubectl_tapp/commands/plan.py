"""`kubectl tapp plan`: forecasts what an edit would do, and writes nothing."""

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.plan_options import PlanOptions


def plan(session: Session, options: PlanOptions) -> int:
    """Forecast what an edit would do, without writing anything.

    The plan shows which instances are updated, restarted or deleted and why, in which order, how
    long that takes, and which instances get stuck.
    """
    from kubectl_tapp.commands import planning  # noqa: PLC0415 - it costs start time

    return planning.plan(session, options)
