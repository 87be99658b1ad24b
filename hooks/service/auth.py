"""Bearer tokens: who may call the hooks."""

import hmac
from contextlib import suppress
from pathlib import Path


class TokenFileError(Exception):
    """The token file cannot be used; the service must not start without its lock."""


class Tokens:
    """The tokens of a file, one a line, read anew for each call.

    During a rotation the file holds the old and the new token. A file that becomes unreadable or
    empty while the service runs leaves the last good tokens in force.
    """

    def __init__(self, path: Path) -> None:
        """Reads the file. Raises TokenFileError: it cannot be read or holds no token."""
        self._path = path
        self._tokens: list[bytes] = []
        self._reload()

    def _reload(self) -> None:
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError as error:
            raise TokenFileError(f"{self._path}: {error.strerror}") from None
        tokens = [line.strip() for line in lines if line.strip()]
        if not tokens:
            raise TokenFileError(f"{self._path}: holds no token; write one a line")
        self._tokens = tokens

    def accept(self, header: str | None) -> bool:
        """True if an Authorization header carries one of the tokens (compared in constant time)."""
        with suppress(TokenFileError):  # the last good tokens stay in force
            self._reload()
        scheme, _, token = (header or "").partition(" ")
        # Servers show a header's bytes as Latin-1 (PEP 3333). Some clients send text in Latin-1.
        sent = token.strip().encode("latin-1", "replace")
        both = (sent, sent.decode("latin-1").encode())
        matches = [hmac.compare_digest(given, known) for known in self._tokens for given in both]
        return scheme.lower() == "bearer" and any(matches)
