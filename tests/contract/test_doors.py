"""The service's doors on a real gunicorn: bearer tokens, TLS, mTLS; nothing of them in the log."""

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


def ask(service: Service, token: str | None, path: str = "/sync") -> int:
    """The status of a call; an error's body is checked for what it must not tell."""
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
    """A token file as a Secret's volume shows it: a link to a link that is swapped."""
    path = tmp_path_factory.mktemp("secret") / "token"
    path.write_text(OLD + "\n")
    return path


@pytest.fixture(scope="module")
def guarded(token: Path) -> Iterator[Service]:
    # One worker: each looks at the file when it is called, and nothing says which of two is.
    with Service(workers=1, TAPP_AUTH_TOKEN_FILE=str(token), TAPP_LOG_LEVEL="DEBUG") as service:
        yield service


@pytest.mark.parametrize("path", HOOKS)
def test_only_the_right_token_opens_a_hook(guarded: Service, path: str) -> None:
    assert ask(guarded, OLD, path) == 200
    for wrong in (None, "", "wrong", OLD[:-1], OLD + "x", OLD.upper(), f"{OLD} {OLD}"):
        assert ask(guarded, wrong, path) == 401


@pytest.mark.parametrize("path", PROBES)
def test_probes_need_no_token(guarded: Service, path: str) -> None:
    assert guarded.get(path)[0] == 200


def test_a_rotation_needs_no_restart_and_a_lost_file_locks_nobody_out(
    guarded: Service, token: Path
) -> None:
    workers = guarded.workers
    token.write_text(f"{OLD}\n{NEW}\n")
    assert [ask(guarded, OLD), ask(guarded, NEW)] == [200, 200]
    replaced = token.with_name("next")
    replaced.write_text(NEW)
    replaced.replace(token)
    assert [ask(guarded, OLD), ask(guarded, NEW)] == [401, 200]
    token.unlink()
    assert [ask(guarded, OLD), ask(guarded, NEW)] == [401, 200]
    token.write_text("")
    assert ask(guarded, NEW) == 200
    assert ask(guarded, "") == 401
    token.write_text(OLD)
    assert ask(guarded, OLD) == 200
    assert guarded.workers == workers


def test_a_token_beyond_ascii_opens_as_the_bytes_of_the_file(guarded: Service, token: Path) -> None:
    """As curl and Metacontroller send it."""
    token.write_bytes("g\u00e9heim-7c1e".encode())
    try:
        assert ask(guarded, "g\u00e9heim-7c1e".encode().decode("latin-1")) == 200
        assert ask(guarded, "g\u00e9heim-7c1f".encode().decode("latin-1")) == 401
    finally:
        token.write_text(OLD)


def test_a_log_tells_no_token(guarded: Service) -> None:
    assert ask(guarded, OLD) == 200
    assert ask(guarded, "s3cret-guess") == 401
    log = guarded.output()
    assert '"message": "sync"' in log
    for secret in (OLD, NEW, "s3cret-guess", "Bearer"):
        assert secret not in log


@pytest.mark.parametrize("content", [None, "", " \n\n"])
def test_without_a_token_in_the_file_it_refuses_to_start(
    tmp_path: Path, content: str | None
) -> None:
    """Rather than serve without its lock."""
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
    """Files of a throw-away CA: the server's, a client's, and those of a CA nobody trusts."""
    folder = tmp_path_factory.mktemp("pki")
    for name, ca in (("ours", trustme.CA()), ("theirs", trustme.CA())):
        ca.cert_pem.write_to_path(folder / f"{name}.ca")
        for role in ("server", "client"):
            made = ca.issue_cert(HOST, "tapp-hooks.tapp-system.svc")
            made.private_key_and_cert_chain_pem.write_to_path(folder / f"{name}.{role}")
            made.private_key_pem.write_to_path(folder / f"{name}.{role}.key")
            made.cert_chain_pems[0].write_to_path(folder / f"{name}.{role}.crt")
    return {path.name: str(path) for path in folder.iterdir()}


def context(files: dict[str, str], ca: str = "ours", client: str | None = None) -> ssl.SSLContext:
    """How a client of that CA connects, with its own certificate or without."""
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
    with Service(tls=context(files), **served(files)) as service:
        yield service


@pytest.fixture(scope="module")
def mtls(files: dict[str, str]) -> Iterator[Service]:
    trusted = {"TAPP_TLS_CLIENT_CA_FILE": files["ours.ca"]}
    with Service(tls=context(files, client="ours"), **served(files), **trusted) as service:
        yield service


def through(service: Service, trust: ssl.SSLContext) -> int:
    """The status of a call with another client's trust and certificate."""
    connection = http.client.HTTPSConnection(HOST, service.port, timeout=60, context=trust)
    try:
        connection.request("POST", "/sync", BODY, {"Content-Type": "application/json"})
        return connection.getresponse().status
    finally:
        connection.close()


def test_tls_serves_who_trusts_its_ca(tls: Service, files: dict[str, str]) -> None:
    assert through(tls, context(files)) == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        through(tls, context(files, ca="theirs"))


def test_a_tls_port_serves_no_plain_http(tls: Service) -> None:
    with socket.create_connection((HOST, tls.port), 20) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        with suppress(ConnectionResetError):
            assert connection.recv(1000) == b""


def test_a_renewed_certificate_needs_no_restart(tls: Service, files: dict[str, str]) -> None:
    before = {name: Path(files[f"ours.server.{name}"]).read_bytes() for name in ("crt", "key")}
    try:
        for name in before:
            Path(files[f"ours.server.{name}"]).write_bytes(
                Path(files[f"theirs.server.{name}"]).read_bytes()
            )
        for _ in range(4):  # every worker shows the new one
            assert through(tls, context(files, ca="theirs")) == 200
    finally:
        for name, content in before.items():
            Path(files[f"ours.server.{name}"]).write_bytes(content)
    assert through(tls, context(files)) == 200


def test_old_tls_is_refused(tls: Service, files: dict[str, str]) -> None:
    """Metacontroller speaks 1.2 and newer."""
    modern = context(files)
    modern.minimum_version = ssl.TLSVersion.TLSv1_2
    assert through(tls, modern) == 200
    old = context(files)
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        through(tls, old)


def test_mtls_serves_clients_of_its_ca(mtls: Service, files: dict[str, str]) -> None:
    assert through(mtls, context(files, client="ours")) == 200


@pytest.mark.parametrize("client", [None, "theirs"])
def test_mtls_serves_nobody_else(mtls: Service, files: dict[str, str], client: str | None) -> None:
    with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
        through(mtls, context(files, client=client))


def test_it_goes_on_after_handshakes_that_failed(mtls: Service, files: dict[str, str]) -> None:
    for client in (None, "theirs") * 8:
        with pytest.raises((ssl.SSLError, OSError, http.client.HTTPException)):
            through(mtls, context(files, client=client))
    assert [through(mtls, context(files, client="ours")) for _ in range(8)] == [200] * 8
    log = mtls.output()
    assert "PRIVATE KEY" not in log
    assert "Worker failed" not in log
