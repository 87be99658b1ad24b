"""`kubectl tapp status`: what each instance is doing, and what waits for what."""

from kubectl_tapp.options import Name
from kubectl_tapp.session import Session


def status(session: Session, name: Name) -> None:
    """One line an instance; below it what waits for what."""
    from kubectl_tapp.decisions import decide, explained  # noqa: PLC0415 - it costs start time

    cluster = session.cluster
    observed = cluster.observe(name)
    observed.require("pods")
    controller = observed.controller or cluster.controller()
    plan = decide(observed, controller, cluster.options(controller), session.now())
    for each in explained(plan).instances:
        session.say(f"{each.id:<6}{each.status:<12}{each.template:<12}{each.message}")
