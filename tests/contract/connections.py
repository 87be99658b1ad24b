"""Opens connections to a real gunicorn, and reads the responses."""

import json
import socket

from tests.contract.calls import good
from tests.load.service import HOST, Service

LONG = 120.0
BODY = json.dumps(good()).encode()
POST = b"POST /sync HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
WHOLE = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
PROBE = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
HALVES = 300


def connect(service: Service) -> socket.socket:
    return socket.create_connection((HOST, service.port), LONG)


def read_responses(
    connection: socket.socket, number: int = 1
) -> list[tuple[int, dict[str, str], bytes]]:
    """Returns status, headers and body of up to `number` responses; fewer if the connection ends
    before.
    """
    stream, found = connection.makefile("rb"), []
    for _ in range(number):
        line = stream.readline()
        if not line:
            break
        headers = {}
        while (text := stream.readline().decode().strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = stream.read(int(headers["content-length"]))
        found.append((int(line.split()[1]), headers, body))
    return found


def error_message(connection: socket.socket, code: int) -> str:
    """Returns the message of the JSON error that arrives next, and checks its status code.

    The connection must end after the error.
    """
    ((got, headers, body),) = read_responses(connection, 2)
    assert got == code, body
    assert headers["connection"] == "close", body
    assert headers["content-type"] == "application/json"
    return str(json.loads(body)["error"])
