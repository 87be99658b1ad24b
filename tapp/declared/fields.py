"""Types of the fields of a TApp, and keywords that only the CRD uses.

The text below a field is the field's description in the CRD. `json_schema_extra` has further
validation rules for the CRD (`crds/schema.py`). The service itself does not check those rules, so
that it can read a TApp that was stored before the CRD had them.
"""

from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from tapp.declared import rules
from tapp.kube.names import DNS_LABEL, LABEL_LENGTH, MAX_NAME
from tapp.words.vocabulary import MAX_REPLICAS

# Most characters of a value in `spec.values` or `spec.defaultValues`.
LONGEST_VALUE: Final = 1_024

T = TypeVar("T")


class Value(BaseModel):
    """Base class of all models of a TApp's fields.

    Models are immutable, are strict about types, and ignore unknown fields. A JSON null counts as
    an absent field, as in Go.
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


# A mapping of which null entries are left out. A null in place of the mapping is read as empty.
Entries = Annotated[dict[str, T], BeforeValidator(_without_nulls)]

# Keywords of the CRD

Keywords = dict[str, Any]

NAME: Final[Keywords] = {"maxLength": MAX_NAME}
# The prefix of a key may have `MAX_NAME` characters, and the name behind it `LABEL_LENGTH`.
LABEL_KEY: Final[Keywords] = {
    "maxLength": MAX_NAME + 1 + LABEL_LENGTH,
    "pattern": f"^({DNS_LABEL}(\\.{DNS_LABEL})*/)?[A-Za-z0-9]([-._A-Za-z0-9]{{0,61}}[A-Za-z0-9])?$",
}
# For a map that may be null or have null entries, because server-side apply leaves a null when a
# user removes the last entry. `maxProperties` bounds the map, because the API server accepts a CEL
# rule only if its worst case is bounded.
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
