"""`kubectl tapp rehearse`: simulates an edit many times with random faults, and writes nothing to
the cluster.
"""

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.rehearse_options import RehearseOptions


def rehearse(session: Session, options: RehearseOptions) -> int:
    """Play an edit while faults fall, without writing anything.

    Nodes are lost, pods are evicted, containers crash, images cannot be pulled, and controllers
    restart, at random moments. The report shows how many instances served in the worst run, how
    long the runs took, and which got stuck. It is a random search, and no proof.
    """
    from kubectl_tapp.commands import rehearsing  # noqa: PLC0415 - it costs start time

    return rehearsing.rehearse(session, options)
