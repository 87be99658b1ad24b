"""Changes that no test can notice, and why.

The printed line of a survivor holds the function and the change. A gap in the tests is closed by a
test, not listed here.
"""

from typing import NamedTuple


class Equivalent(NamedTuple):
    """One change, wherever in the function it stands."""

    function: str
    change: str
    reason: str


EQUIVALENTS: tuple[Equivalent, ...] = ()
