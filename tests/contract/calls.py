"""Calls the application over WSGI with bytes."""

import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from hooks.app import create_app
from hooks.service.settings import Settings
from tests.builders import NOW, Document, request, running, stored, tapp

ABOUT_TAPPS = ("/sync", "/finalize", "/customize", "/plan")
HOOKS = (*ABOUT_TAPPS, "/pod-status")
WITH_CHILDREN = ("/sync", "/finalize", "/plan")


def client(**settings: Any) -> FlaskClient:
    """Returns a client of a new application."""
    app = create_app(Settings(**{"log_level": "ERROR", **settings}), clock=lambda: NOW)
    return app.test_client()


CLIENT = client()


def post(path: str, body: Any, content_type: str | None = "application/json") -> TestResponse:
    """Sends a POST; documents are sent as JSON."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return CLIENT.post(path, data=sent, content_type=content_type)


def check_error(response: TestResponse, *codes: int) -> Document:
    """Checks that the response is a readable JSON error without internals, and returns it."""
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
    """Returns a request with one settled pod that is valid for every hook."""
    parent = tapp()
    child = json.loads(post("/sync", request(parent)).data)["children"][0]
    pod = running(stored(child, parent))
    return {**request(parent, [pod]), "object": pod}
