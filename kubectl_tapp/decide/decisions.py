"""The decisions of one sync on what the cluster shows, by the code that the service runs."""

from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.registration import Registration
from tapp.plan import Plan, plan
from tapp.spec.model import TApp


def decide(observed: Observed, registration: Registration, now: float) -> Plan:
    """What a sync at `now`, in seconds since the epoch, would decide on what is observed.

    Raises:
        hooks.wire.decode.WireError: the TApp is not one, with the path of what is wrong.
    """
    request = Request(observed.request(registration.controller), TApp, Memo(0))
    return plan(world_of(request), registration.options, now)


def decided(observed: Observed, registration: Registration, now: float) -> Plan:
    """The same, for a command that cannot go on without it.

    Raises:
        CommandError: the TApp is none.
    """
    try:
        return decide(observed, registration, now)
    except WireError as error:
        raise CommandError(f"TApp {observed.name} is invalid: {error}") from None
