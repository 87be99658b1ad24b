"""Limit of the bytes that one sync fills in: placeholders in the
templates of all instances of a TApp.

If the limit is exceeded, no instance is filled in: never a part of them.
"""

from typing import Final

from tapp.declared.placeholders import PLACEHOLDER_BYTES

# Most bytes (`Slots.bytes`) that one sync fills in for all instances of a TApp. The limit applies
# to the pod templates together, to the claim templates together, and to `spec.serviceTemplate`.
MOST_FILLED_IN: Final = 50_000_000


def filling_problem(total: int, instances: int, most_of_it: str = "") -> str:
    """Returns why `total` bytes (`Slots.bytes`) exceed the limit, or an
    empty string if they do not.

    `most_of_it` names the largest template, for the message.
    """
    if total <= MOST_FILLED_IN:
        return ""
    return (
        f"filled in for all instances, it counts as {total:,} bytes{most_of_it} (its length and "
        f"{PLACEHOLDER_BYTES} for each placeholder, for {instances} instances), and a sync fills "
        f"in at most {MOST_FILLED_IN:,}: move text into a ConfigMap, use fewer placeholders, or "
        "run fewer instances"
    )
