"""Checks the bearer tokens of requests to the hooks."""

import hmac
from contextlib import suppress
from pathlib import Path


class TokenFileError(Exception):
    """The token file cannot be used. The service must not start then: every caller could use it."""


class Tokens:
    """The accepted tokens, one on each line of a file that is read again for each request.

    During a rotation the file holds the old and the new token. If the file becomes unreadable or
    empty while the service runs, the tokens of the last successful read stay valid.
    """

    def __init__(self, path: Path) -> None:
        """Reads the accepted tokens from a file.

        Raises TokenFileError if the file is unreadable or holds no token.
        """
        self._path = path
        self._tokens: list[bytes] = []
        self._reload()

    def _reload(self) -> None:
        """Reads the file again.

        Raises TokenFileError if the file is unreadable or holds no token.
        """
        try:
            lines = self._path.read_bytes().splitlines()
        except OSError as error:
            raise TokenFileError(f"{self._path}: {error.strerror}") from None
        tokens = [line.strip() for line in lines if line.strip()]
        if not tokens:
            raise TokenFileError(f"{self._path}: the file has no token; write one token per line")
        self._tokens = tokens

    def accept(self, header: str | None) -> bool:
        """Returns True if an Authorization header carries one of the tokens.

        The comparison takes the same time for every token of the same length. `header` is the value
        of the header; None if the request has none.
        """
        with suppress(TokenFileError):  # the tokens of the last successful read stay valid
            self._reload()
        scheme, _, token = (header or "").partition(" ")
        # WSGI servers decode the bytes of a header as Latin-1 (PEP 3333). A client may have encoded
        # a token that is not ASCII as UTF-8 or as Latin-1, so both are compared.
        sent = token.strip().encode("latin-1", "replace")
        both = (sent, sent.decode("latin-1").encode())
        matches = [hmac.compare_digest(given, known) for known in self._tokens for given in both]
        return scheme.lower() == "bearer" and any(matches)
