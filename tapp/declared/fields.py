"""Types that fields of a TApp are made of.

A field says all of itself once: how it is read, what it means (the text below it), and in
`json_schema_extra` what else the CRD says of it: `crds/schema.py` makes the CRD of that. The latter
binds nobody here: what was stored before the CRD had a rule is read as ever.
"""

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tapp.declared import rules
from tapp.kube.names import MAX_NAME
from tapp.words.vocabulary import MAX_REPLICAS

LONGEST_VALUE: Final = 1_024
"""Characters of an instance's value."""

T = TypeVar("T")


class Value(BaseModel):
    """Base of all models: immutable, strict about types, silent about fields it does not know.

    A JSON null is an absent field, as in Go's decoder.
    """

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", alias_generator=to_camel, populate_by_name=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        return _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict) and None in value.values():
        return {key: item for key, item in value.items() if item is not None}
    return value


Entries = Annotated[dict[str, T], BeforeValidator(_without_nulls)]
"""A map in which an entry that is null is none, as a map that is null has none."""

# --- what only the CRD says -----------------------------------------------------------------------

Keywords = dict[str, Any]

NAME: Final[Keywords] = {"maxLength": MAX_NAME}
ENTRIES: Final[Keywords] = {"maxProperties": MAX_REPLICAS, "nullable": True}
"""Of a map: the API server takes a CEL rule only if its worst case is bounded, and a server-side
apply leaves null where the last entry went."""
BY_INSTANCE: Final[Keywords] = {**ENTRIES, **rules.INSTANCE_IDS}
VALUES: Final[Keywords] = {"maxProperties": 64}


BUDGET: Final[Keywords] = {"maxLength": 16, **rules.BUDGET}
PARTITION: Final[Keywords] = {"maxLength": 16, **rules.PARTITION}


Name = Annotated[str, Field(json_schema_extra=NAME)]
OwnValue = Annotated[
    str, Field(json_schema_extra={"maxLength": LONGEST_VALUE, "pattern": r"^[^\x00]*$"})
]
Whole = Annotated[int, Field(ge=0, le=2**31 - 1)]
