"""Builds forecasts for the tests of the HTML page of a plan.

`eventful` has all outcomes of instances and a text that is hostile HTML.
"""

from kubectl_tapp.base.shipped import COMPOSITE, manifest
from kubectl_tapp.cluster.registration import Registration
from kubectl_tapp.forecast.forecast import Assumptions, Forecast
from kubectl_tapp.forecast.foresee import as_running, forecast
from tapp.world import Options
from tests.builders import Document
from tests.scenarios.apps import stored, storing

NOW = 1_790_000_000.0
HOSTILE = "<script>alert(1)</script>&\"'"


def eventful(replicas: int = 24) -> Forecast:
    """Returns the forecast of an edit in which instances have every outcome; the edit also has an
    invalid field.

    Instances are updated in place, replaced, created or deleted, or wait. An environment variable
    contains `HOSTILE`.
    """
    pool = {"canary": storing("web:1"), "wide": storing("web:1")}
    strategy = {"maxUnavailable": 4, "forceUpdate": {"maxUnavailable": 3}}
    templates = {"2": "canary", "3": "canary", "5": "wide", "6": "wide", "7": "wide"}
    before = stored(
        "web:1", replicas, templatePool=pool, templates=templates, updateStrategy=strategy
    )
    wide = storing("web:1", env=[{"name": "LEVEL", "value": HOSTILE}])
    spec = {
        "template": storing("web:2"),
        "templatePool": {"canary": storing("gone:1"), "wide": wide},
        "templates": {**templates, "9": "cannary"},
        "statuses": {"4": "Killed"},
        "replicas": replicas + 2,
    }
    return foreseen(before, {**before, "spec": {**before["spec"], **spec}}, ("gone:1",))


def foreseen(before: Document, after: Document, broken: tuple[str, ...] = ()) -> Forecast:
    """Returns the forecast of an edit that turns the TApp `before` into `after`, without a cluster.

    `broken` are images that the forecast assumes to be missing.
    """
    registration = Registration(manifest(COMPOSITE), Options())
    observed = as_running(before, registration, NOW)
    return forecast(observed, after, registration, NOW, Assumptions(broken=broken, made_up=True))
