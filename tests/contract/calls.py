"""Calls the application in this process over WSGI, with bytes as bodies."""

import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import NOW, Document, request, running, stored, tapp

ABOUT_TAPPS = ("/sync", "/finalize", "/customize", "/plan")
"""Endpoints that get a request about a TApp."""
HOOKS = (*ABOUT_TAPPS, "/pod-status")
"""All endpoints that Metacontroller calls, and `/plan`."""
WITH_CHILDREN = ("/sync", "/finalize", "/plan")
"""Endpoints whose request contains the children of a TApp."""


def client(**settings: Any) -> FlaskClient:
    """Returns a test client of a new application with these settings."""
    app = create_app(Settings(**{"log_level": "ERROR", **settings}), clock=lambda: NOW)
    return app.test_client()


CLIENT = client()


def post(path: str, body: Any, content_type: str | None = "application/json") -> TestResponse:
    """Sends a POST request to an endpoint and returns the response.

    A body that is not bytes is sent as JSON. `content_type` None sends no Content-Type header.
    """
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CLIENT.post(path, data=sent, content_type=content_type)


def check_error(response: TestResponse, *codes: int) -> Document:
    """Checks that the response is a JSON error with one of these status codes, and returns its
    body.

    The error must be short and must not reveal tracebacks or files of the service.
    """
    assert response.status_code in codes, response.data
    assert response.mimetype == "application/json"
    body: Document = json.loads(response.data)
    assert body["error"]
    assert body.keys() <= {"error", "path", "requestId"}
    assert all(isinstance(value, str) and len(value) <= 600 for value in body.values())
    assert b"Traceback" not in response.data
    assert b".py" not in response.data
    assert "children" not in body
    return body


def good() -> Document:
    """Returns a request with one running pod, which is a valid request for each endpoint."""
    parent = tapp()
    child = json.loads(post("/sync", request(parent)).data)["children"][0]
    pod = running(stored(child, parent))
    return {**request(parent, [pod]), "object": pod}
