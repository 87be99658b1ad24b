"""Runs the service's decision code on objects that the plugin has read."""

from contextlib import suppress

from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Observed
from kubectl_tapp.cluster.registration import Registration
from tapp.declared.model import TApp
from tapp.plan import Plan, make_plan

MEMORY = 256 * 1024 * 1024  # Bytes that a cache may hold for repeated decisions about one TApp


def decide(
    observed: Observed, registration: Registration, now: float, memo: Memo | None = None
) -> Plan:
    """Returns the plan of a sync: the decisions that the service would make from these objects.

    Args:
        observed: the TApp with its objects.
        registration: the CompositeController of the TApp, and the options of the service.
        now: the time of the sync, in seconds since the epoch.
        memo: caches parsed objects for callers that decide repeatedly; None caches nothing.

    Raises hooks.wire.decode.WireError if the TApp is invalid.
    """
    request = Request(observed.sync_request(registration.controller), TApp, memo or Memo(0))
    return make_plan(world_of(request), registration.options, now)


def decide_or_fail(
    observed: Observed, registration: Registration, now: float, memo: Memo | None = None
) -> Plan:
    """Returns the plan of a sync, as `decide` does, but raises an error for the user if the TApp is
    invalid.

    `now` is the time of the sync, and `memo` caches parsed objects; None caches nothing. Raises
    CommandError if the TApp is invalid.
    """
    try:
        return decide(observed, registration, now, memo)
    except WireError as error:
        raise CommandError(f"TApp {observed.name} is invalid: {error}") from None


def decide_if_readable(observed: Observed, registration: Registration, now: float) -> Plan | None:
    """Returns the plan of a sync at `now`, or None if the TApp does not exist yet or is invalid.

    A caller that forecasts an edit of an invalid TApp gets None, and then treats all instances as
    new. So an edit can repair such a TApp.
    """
    with suppress(WireError):
        if observed.tapp["metadata"].get("uid"):
            return decide(observed, registration, now)
    return None
