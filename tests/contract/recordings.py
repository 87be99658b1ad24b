"""Replays the requests of a real cluster, which `recorded/real-*.json` contain, against the
service.
"""

import json
from pathlib import Path
from typing import Any

from hooks.app import create_app
from hooks.service.settings import Settings

Document = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded"
FILES = sorted(RECORDED.glob("real-*.json"))
TOLERATION_SECONDS = 3
"""The service's setting at the time of the recording, in seconds."""


def replay(record: Document) -> Document:
    """Sends a recorded request to the service at the recorded time, and returns the response."""
    settings = Settings(log_level="ERROR", toleration_seconds=TOLERATION_SECONDS)
    client = create_app(settings, clock=lambda: float(record["now"])).test_client()
    response = client.post(f"/{record['hook']}", json=record["request"])
    assert response.status_code == 200, response.data
    answer: Document = json.loads(response.data)
    return answer
