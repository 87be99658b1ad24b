"""The ground that Metacontroller stands on: the API, the caches of it, the kinds and the clock."""

from dataclasses import dataclass

from simulator.api.store import Store
from simulator.metacontroller.cache import Cache
from simulator.objects.clock import Clock
from simulator.objects.kinds import Kinds


@dataclass(frozen=True, slots=True)
class Environment:
    """The surroundings of one Metacontroller; any of them may be real or simulated."""

    store: Store
    cache: Cache
    kinds: Kinds
    clock: Clock
