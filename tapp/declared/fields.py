"""Types of the fields of a TApp, and keywords that only the CRD uses.

The text below a field is its description. `json_schema_extra` has further rules for the CRD
(`crds/schema.py`). The service itself does not check those rules, so that it can still read a TApp
that was stored before the CRD had them.
"""

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tapp.declared import rules
from tapp.kube.names import MAX_NAME
from tapp.words.vocabulary import MAX_REPLICAS

# Most characters of an instance's value.
LONGEST_VALUE: Final = 1_024

T = TypeVar("T")


class Value(BaseModel):
    """Base of all models: immutable, strict about types, and unknown fields are ignored.

    A JSON null counts as an absent field, as in Go.
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


# A map without its null entries; a null map is empty.
Entries = Annotated[dict[str, T], BeforeValidator(_without_nulls)]

# Keywords of the CRD

Keywords = dict[str, Any]

NAME: Final[Keywords] = {"maxLength": MAX_NAME}
# A map that may be null or have null entries: server-side apply leaves a null when the last entry
# is removed. The API server accepts a CEL rule only if its worst case is bounded.
ENTRIES: Final[Keywords] = {"maxProperties": MAX_REPLICAS, "nullable": True}
BY_INSTANCE: Final[Keywords] = {**ENTRIES, **rules.INSTANCE_IDS}
VALUES: Final[Keywords] = {"maxProperties": 64}


BUDGET: Final[Keywords] = {"maxLength": 16, **rules.BUDGET}
PORTION: Final[Keywords] = {"maxLength": 16, **rules.PORTION}


Name = Annotated[str, Field(json_schema_extra=NAME)]
OwnValue = Annotated[
    str, Field(json_schema_extra={"maxLength": LONGEST_VALUE, "pattern": r"^[^\x00]*$"})
]
Whole = Annotated[int, Field(ge=0, le=2**31 - 1)]
