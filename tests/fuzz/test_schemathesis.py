"""Schemathesis against the served OpenAPI document, in process.

It makes requests that are as the document says, and requests that are not, which must be refused.
The other way round does not hold: a schema cannot say that names stand only once, or that children
live in their parent's namespace.
"""

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import positive_data_acceptance

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import NOW
from tests.sizes import FULL, size

APP = create_app(Settings(log_level="ERROR"), clock=lambda: NOW)
SCHEMA = schemathesis.openapi.from_wsgi("/openapi.json", APP)
SCHEMA.config.phases.coverage.enabled = FULL
"""Two thousand cases besides the random ones, which take seconds when collected, by each worker."""


@SCHEMA.parametrize()
@settings(max_examples=size(12, 50), deadline=None, suppress_health_check=list(HealthCheck))
def test_every_operation_is_as_the_document_says(case: schemathesis.Case) -> None:
    response = case.call()
    not_served = response.status_code == 503
    case.validate_response(
        response,
        excluded_checks=[positive_data_acceptance, *([not_a_server_error] if not_served else [])],
    )
    assert not not_served or b"Namespace" in response.content
