"""The limit of what one sync fills in: placeholders in the templates of all instances of a TApp.

A sync fills in everything or refuses the templates. It never fills in a part of the instances.
"""

from typing import Final

from tapp.declared.placeholders import PLACEHOLDER_BYTES

MOST_FILLED_IN: Final = 50_000_000
"""Bytes (`Slots.bytes`) that one sync fills in for all instances of a TApp, at most.

The limit holds for the pod templates together, for the claim templates together, and for
`spec.serviceTemplate`.
"""


def too_large(total: int, instances: int, most_of_it: str = "") -> str:
    """Returns why this many bytes (`Slots.bytes`) are not filled in, "" if they are."""
    if total <= MOST_FILLED_IN:
        return ""
    return (
        f"filled in for all instances, it counts as {total:,} bytes{most_of_it} (its length and "
        f"{PLACEHOLDER_BYTES} for each placeholder, for {instances} instances), and a sync fills "
        f"in at most {MOST_FILLED_IN:,}: move text into a ConfigMap, use fewer placeholders, or "
        "run fewer instances"
    )
