"""Tests access to the service on a real gunicorn with bearer tokens, TLS and mTLS."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from tests.contract.calls import HOOKS, good
from tests.load.service import HOST, Service

OLD, NEW = "s3cret-old-7c1e", "s3cret-new-90ab"
BODY = json.dumps(good()).encode()
PROBES = ("/healthz", "/readyz", "/version", "/metrics")


def status_with_token(service: Service, token: str | None, path: str = "/sync") -> int:
    """Returns the status code of a request with this bearer token; None sends no token.

    Checks in addition that an error reveals no secret.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    code, answer = service.call("POST", path, BODY, **headers)
    if code != 200:
        assert json.loads(answer).keys() <= {"error", "path", "requestId"}
        for secret in (OLD, NEW, "Traceback", ".py", "token_file", "/tmp"):
            assert secret.encode() not in answer
    return code


# --- bearer token ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a file with a token, like one of a mounted Secret."""
    path = tmp_path_factory.mktemp("secret") / "token"
    path.write_text(OLD + "\n")
    return path


@pytest.fixture(scope="module")
def guarded(token: Path) -> Iterator[Service]:
    # One worker, because each worker checks the file only when it gets a request.
    with Service(workers=1, TAPP_AUTH_TOKEN_FILE=str(token), TAPP_LOG_LEVEL="DEBUG") as service:
        yield service


@pytest.mark.parametrize("path", HOOKS)
def test_hook_accepts_only_the_right_token(guarded: Service, path: str) -> None:
    assert status_with_token(guarded, OLD, path) == 200
    for wrong in (None, "", "wrong", OLD[:-1], OLD + "x", OLD.upper(), f"{OLD} {OLD}"):
        assert status_with_token(guarded, wrong, path) == 401


@pytest.mark.parametrize("path", PROBES)
def test_probes_need_no_token(guarded: Service, path: str) -> None:
    assert guarded.get(path)[0] == 200


def test_token_can_be_rotated_and_stays_valid_if_the_file_is_lost(
    guarded: Service, token: Path
) -> None:
    workers = guarded.workers
    token.write_text(f"{OLD}\n{NEW}\n")
    assert [status_with_token(guarded, OLD), status_with_token(guarded, NEW)] == [200, 200]
    replaced = token.with_name("next")
    replaced.write_text(NEW)
    replaced.replace(token)
    assert [status_with_token(guarded, OLD), status_with_token(guarded, NEW)] == [401, 200]
    token.unlink()
    assert [status_with_token(guarded, OLD), status_with_token(guarded, NEW)] == [401, 200]
    token.write_text("")
    assert status_with_token(guarded, NEW) == 200
    assert status_with_token(guarded, "") == 401
    token.write_text(OLD)
    assert status_with_token(guarded, OLD) == 200
    assert guarded.workers == workers


def test_token_with_other_characters_than_ascii_is_compared_as_utf_8(
    guarded: Service, token: Path
) -> None:
    """A token in the file with the letter é is accepted if the client sends the file's bytes.

    Metacontroller and curl do that.
    """
    token.write_bytes("g\u00e9heim-7c1e".encode())
    try:
        assert status_with_token(guarded, "g\u00e9heim-7c1e".encode().decode("latin-1")) == 200
        assert status_with_token(guarded, "g\u00e9heim-7c1f".encode().decode("latin-1")) == 401
    finally:
        token.write_text(OLD)


def test_log_has_no_token(guarded: Service) -> None:
    assert status_with_token(guarded, OLD) == 200
    assert status_with_token(guarded, "s3cret-guess") == 401
    log = guarded.output()
    assert '"message": "sync answered"' in log
    for secret in (OLD, NEW, "s3cret-guess", "Bearer"):
        assert secret not in log


@pytest.mark.parametrize("content", [None, "", " \n\n"], ids=["no file", "empty", "blank"])
def test_service_does_not_start_without_a_token_in_its_file(
    tmp_path: Path, content: str | None
) -> None:
    """A missing, empty or blank token file is an error at the start; otherwise there would be no
    protection.
    """
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    service = Service(workers=1, TAPP_AUTH_TOKEN_FILE=str(path))
    assert service.process.wait(60) not in (0, None)
    output = service.output()
    service.stop()
    assert output.startswith(f"error: TAPP_AUTH_TOKEN_FILE cannot be used: {path}: ")
    assert output.count("\n") == 1


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns file name -> path for keys and certificates of a server and a client.

    The CA of the files `ours.*` is the one that the tests trust; `theirs.*` are from another CA.
    """
    folder = tmp_path_factory.mktemp("pki")
    for name, ca in (("ours", trustme.CA()), ("theirs", trustme.CA())):
        ca.cert_pem.write_to_path(folder / f"{name}.ca")
        for role in ("server", "client"):
            made = ca.issue_cert(HOST, "tapp-hooks.tapp-system.svc")
            made.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.{role}")
            made.private_key_pem.write_to_path(folder / f"{name}.{role}.key")
            made.cert_chain_pems[0].write_to_path(folder / f"{name}.{role}.crt")
    return {path.name: str(path) for path in folder.iterdir()}


def client_context(
    files: dict[str, str], ca: str = "ours", client: str | None = None
) -> ssl.SSLContext:
    """Returns the TLS context of a client that trusts the CA `ca`.

    `client` names the CA that has issued the client's certificate; None for a client without one.
    """
    made = ssl.create_default_context(cafile=files[f"{ca}.ca"])
    if client is not None:
        made.load_cert_chain(files[f"{client}.client"])
    return made


def served(files: dict[str, str]) -> dict[str, str]:
    return {
        "TAPP_TLS_CERT_FILE": files["ours.server.crt"],
        "TAPP_TLS_KEY_FILE": files["ours.server.key"],
    }


@pytest.fixture(scope="module")
def tls(files: dict[str, str]) -> Iterator[Service]:
    with Service(tls=client_context(files), **served(files)) as service:
        yield service


@pytest.fixture(scope="module")
def mtls(files: dict[str, str]) -> Iterator[Service]:
    trusted = {"TAPP_TLS_CLIENT_CA_FILE": files["ours.ca"]}
    with Service(tls=client_context(files, client="ours"), **served(files), **trusted) as service:
        yield service


def status_through(service: Service, trust: ssl.SSLContext) -> int:
    """Returns the status code of a request with this TLS context."""
    connection = http.client.HTTPSConnection(HOST, service.port, timeout=60, context=trust)
    try:
        connection.request("POST", "/sync", BODY, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_tls_works_for_clients_that_trust_the_ca(tls: Service, files: dict[str, str]) -> None:
    assert status_through(tls, client_context(files)) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        status_through(tls, client_context(files, ca="theirs"))


def test_tls_port_does_not_respond_to_plain_http(tls: Service) -> None:
    with socket.create_connection((HOST, tls.port), 20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        with suppress(ConnectionResetError):
            assert connection.recv(1000) == b""


def test_renewed_certificate_is_used_without_a_restart(tls: Service, files: dict[str, str]) -> None:
    before = {name: Path(files[f"ours.server.{name}"]).read_bytes() for name in ("crt", "key")}
    try:
        for name in before:
            Path(files[f"ours.server.{name}"]).write_bytes(
                Path(files[f"theirs.server.{name}"]).read_bytes()
            )
        for _ in range(4):  # covers every worker
            assert status_through(tls, client_context(files, ca="theirs")) == 200
    finally:
        for name, content in before.items():
            Path(files[f"ours.server.{name}"]).write_bytes(content)
    assert status_through(tls, client_context(files)) == 200


def test_tls_before_1_2_is_refused(tls: Service, files: dict[str, str]) -> None:
    """A client with TLS 1.2 is served, and one with TLS 1.1 is refused.

    Metacontroller supports TLS 1.2 and newer.
    """
    modern = client_context(files)
    modern.minimum_version = ssl.TLSVersion.TLSv1_2
    assert status_through(tls, modern) == 200
    old = client_context(files)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        status_through(tls, old)


def test_mtls_accepts_client_certificates_of_its_ca(mtls: Service, files: dict[str, str]) -> None:
    assert status_through(mtls, client_context(files, client="ours")) == 200


@pytest.mark.parametrize("client", [None, "theirs"], ids=["no certificate", "other CA"])
def test_mtls_refuses_all_other_clients(
    mtls: Service, files: dict[str, str], client: str | None
) -> None:
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        status_through(mtls, client_context(files, client=client))


def test_service_works_after_failed_handshakes(mtls: Service, files: dict[str, str]) -> None:
    for client in (None, "theirs") * 8:
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            status_through(mtls, client_context(files, client=client))
    assert [status_through(mtls, client_context(files, client="ours")) for _ in range(8)] == [
        200
    ] * 8
    log = mtls.output()
    assert "PRIVATE KEY" not in log
    assert "Worker failed" not in log
