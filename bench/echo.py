"""A Flask route that reads a request as the service does, and returns an answer that is ready.

What a small request costs at least, in the framework that the service is written with.
"""

from flask import Flask, Response, request


class Echo:
    """The route; `answer` is what it returns."""

    def __init__(self, path: str = "/sync") -> None:
        """Without any answer yet."""
        self.answer = b""
        app = Flask("tapp-bench-echo", static_folder=None)
        app.add_url_rule(path, "echo", self._view, methods=["POST"])
        self.app = app

    def _view(self) -> Response:
        length = request.content_length or 0
        request.environ["wsgi.input"].read(length)
        return Response(self.answer, mimetype="application/json")
