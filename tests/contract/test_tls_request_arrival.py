"""Tests slow, incomplete and invalid TLS connections to a real gunicorn."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
import trustme

from hooks.service import tls
from tests.contract.connections import (
    HALVES,
    LONG,
    POST,
    PROBE,
    WHOLE,
    connect,
    error_message,
    read_responses,
)
from tests.load.service import HOST, Service

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with Service(workers=1, TAPP_BODY_SECONDS="2", TAPP_MAX_BODY_BYTES="4000000") as found:
        yield found


@pytest.fixture(scope="module")
def behind_tls(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Service, ssl.SSLContext]]:
    """Yields a service with its own certificate, and the TLS context of its clients."""
    folder, made = tmp_path_factory.mktemp("pki"), trustme.CA().issue_cert(HOST)
    made.private_key_pem.write_to_path(folder / "key")
    made.cert_chain_pems[0].write_to_path(folder / "crt")
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    files = {"TAPP_TLS_CERT_FILE": str(folder / "crt"), "TAPP_TLS_KEY_FILE": str(folder / "key")}
    with Service(workers=1, tls=trust, TAPP_BODY_SECONDS="2", **files) as found:
        yield found, trust


def test_many_incomplete_tls_connections_block_neither_probes_nor_syncs(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    """Opens hundreds of connections that do not continue; most of them have not started a TLS
    handshake.

    Probes and syncs of other clients get their responses, and an incomplete body gets 408.
    """
    service, trust = behind_tls
    with ExitStack() as stack:
        for _ in range(HALVES - 20):
            stack.enter_context(connect(service))
        for _ in range(20):
            stack.enter_context(trust.wrap_socket(connect(service))).sendall(POST)
        assert service.get("/healthz", timeout=LONG)[0] == 200
        large = b'{"parent": "' + b"x" * 20_000_000
        assert service.call("POST", "/sync", large, timeout=LONG)[0] == 400
        with trust.wrap_socket(connect(service)) as connection:
            connection.sendall(WHOLE + PROBE)
            assert [code for code, _, _ in read_responses(connection, 2)] == [200, 200]
        with trust.wrap_socket(connect(service)) as connection:
            connection.sendall(POST + b"Content-Length: 100\r\n\r\n{")
            assert error_message(connection, 408)


def test_connection_without_a_tls_handshake_is_closed_without_a_traceback(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    service, _ = behind_tls
    with connect(service) as plain, suppress(ConnectionResetError):
        plain.sendall(PROBE)
        assert b"200 OK" not in plain.recv(1000)
    with connect(service) as silent, connect(service), suppress(ConnectionResetError):
        assert silent.recv(1) == b""
    with connect(service):
        pass  # like hooks.service.healthcheck
    assert service.get("/healthz", timeout=LONG)[0] == 200
    assert "Traceback" not in service.output()


def test_tls_clients_that_disconnect_do_not_truncate_other_responses(
    behind_tls: tuple[Service, ssl.SSLContext],
) -> None:
    service, trust = behind_tls
    reset = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
    with trust.wrap_socket(connect(service)) as kept:
        for _ in range(10):
            kept.sendall(WHOLE[:-50])
            for how in (WHOLE, WHOLE[:-1], b""):
                leaver = trust.wrap_socket(connect(service))
                leaver.sendall(how)
                leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                leaver.close()
            kept.sendall(WHOLE[-50:])
            assert [code for code, _, _ in read_responses(kept)] == [200]


def test_pending_openssl_error_does_not_reach_another_connection() -> None:
    """An error in OpenSSL's queue must not be reported by the next read of another connection.

    The first part shows that CPython has this problem, the second that `tls.isolated` prevents it.
    """
    folder = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made = trustme.CA().issue_cert(HOST)
    made.configure_cert(folder)
    server, client = _handshaken(folder)
    assert client

    def fail() -> None:
        with pytest.raises(ValueError, match="unknown object"):
            ssl._ASN1Object.fromname("no object")  # type: ignore[attr-defined]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        fail()
    with pytest.raises(ssl.SSLError, match="unknown object"):
        server.read(1)
    with pytest.raises(ConnectionResetError), tls.isolated():
        fail()
    with pytest.raises(ssl.SSLWantReadError):
        server.read(1)


def _handshaken(context: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Returns the server's and the client's side of a TLS connection in memory, after the
    handshake.
    """
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = trust.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)
    for _ in range(3):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return sides[1], sides[0]
