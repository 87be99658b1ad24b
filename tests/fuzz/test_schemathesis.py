"""Schemathesis against the served OpenAPI document, in process.

It makes requests that are as the document says, and requests that are not, which must be refused.
The other way round does not hold: a schema cannot say that names stand only once, or that children
live in their parent's namespace.
"""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import NOW
from tests.sizes import size

APP = create_app(Settings(log_level="ERROR"), clock=lambda: NOW)
SCHEMA = schemathesis.openapi.from_wsgi("/openapi.json", APP)
CASES = [
    pytest.param(operation, mode, id=f"{operation.label} {mode.value}")
    for operation in [found.ok() for found in SCHEMA.get_all_operations()]
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or operation.method == "post"
]
"""A GET has nothing that could be wrong."""


@pytest.mark.parametrize(("operation", "mode"), CASES)
@given(st.data())
@settings(max_examples=size(6, 100), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_operation_is_as_the_document_says(
    operation: schemathesis.schemas.APIOperation, mode: GenerationMode, data: st.DataObject
) -> None:
    case = data.draw(operation.as_strategy(generation_mode=mode))
    response = case.call()
    not_served = response.status_code == 503
    case.validate_response(
        response,
        excluded_checks=[positive_data_acceptance, *([not_a_server_error] if not_served else [])],
    )
    assert not not_served or b"Namespace" in response.content
