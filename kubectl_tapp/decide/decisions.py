"""The decisions of one sync on what the cluster shows, by the code that the service runs."""

from contextlib import suppress

from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.registration import Registration
from tapp.declared.model import TApp
from tapp.plan import Plan, plan

MEMORY = 256 * 1024 * 1024  # Bytes that a memo may hold where one TApp is looked at again and again


def decide(
    observed: Observed, registration: Registration, now: float, memo: Memo | None = None
) -> Plan:
    """The plan of a sync at `now` on what is observed; `memo` is for who looks often.

    Raises hooks.wire.decode.WireError: the TApp is not one, with the path of what is wrong.
    """
    request = Request(observed.request(registration.controller), TApp, memo or Memo(0))
    return plan(world_of(request), registration.options, now)


def decide_or_fail(
    observed: Observed, registration: Registration, now: float, memo: Memo | None = None
) -> Plan:
    """The same, for a command that needs it. Raises CommandError: the TApp is none."""
    try:
        return decide(observed, registration, now, memo)
    except WireError as error:
        raise CommandError(f"TApp {observed.name} is invalid: {error}") from None


def decide_if_readable(observed: Observed, registration: Registration, now: float) -> Plan | None:
    """The plan of the TApp as it is; None where it is not there yet, or cannot be read.

    What the service cannot read, an edit may repair: then all of it is new.
    """
    with suppress(WireError):
        if observed.tapp["metadata"].get("uid"):
            return decide(observed, registration, now)
    return None
