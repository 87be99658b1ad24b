"""The decisions of one sync on what the cluster shows, by the code that the service runs."""

from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document, Observed
from tapp.plan import Plan, plan
from tapp.spec.model import TApp
from tapp.world import Options


def decide(observed: Observed, controller: Document, options: Options, now: float) -> Plan:
    """What a sync at `now` would decide.

    Args:
        observed: the TApp and what belongs to it.
        controller: the CompositeController that is registered, or the shipped one.
        options: the operator's choices.
        now: seconds since the epoch.

    Raises:
        hooks.wire.decode.WireError: the TApp is not one, with the path of what is wrong.
    """
    request = Request(observed.request(controller), TApp, Memo(0))
    return plan(world_of(request), options, now)


def decided(observed: Observed, controller: Document, options: Options, now: float) -> Plan:
    """The same, for a command that cannot go on without it.

    Raises:
        CommandError: the TApp is none.
    """
    try:
        return decide(observed, controller, options, now)
    except WireError as error:
        raise CommandError(f"TApp {observed.name} is invalid: {error}") from None
