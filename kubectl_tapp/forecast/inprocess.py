"""The service's hooks without a web server: Metacontroller's calls, answered in this process."""

from collections.abc import Callable
from typing import Any

from hooks.customize import customize
from hooks.finalize import finalize
from hooks.pod_status import answer_pod_status
from hooks.sync import sync
from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, customize_parent, encode
from kubectl_tapp.decide.decisions import MEMORY
from simulator.metacontroller.hook_client import Answer
from tapp.answer.children import NamespaceMissingError
from tapp.declared.model import Parent, TApp
from tapp.plan import Plan
from tapp.world import Options


class InProcess:
    """Calls the functions that the service calls, with the same errors."""

    def __init__(
        self, options: Options, clock: Callable[[], float], on_plan: Callable[[Plan], None]
    ) -> None:
        """Answers as a service does; `on_plan` hears of each sync's plan before it is answered."""
        self.refused = ""
        """The error of the last request, "" after one that was answered."""
        self._options = options
        self._clock = clock
        self._on_plan = on_plan
        self._memo = Memo(MEMORY)
        self._answers: dict[str, Callable[[bytes], Any]] = {
            "sync": self._sync,
            "finalize": self._finalize,
            "customize": lambda body: customize(*customize_parent(body)),
            "pod-status": lambda body: answer_pod_status(body, clock()),
        }

    def post(self, url: str, body: bytes, seconds: float) -> Answer:  # noqa: ARG002
        """Answers one call."""
        try:
            answer = self._answers[url.rpartition("/")[2]](body)
        except WireError as error:
            self.refused = f"{error.path}: {error.message}" if error.path else error.message
            return Answer(400, encode({"error": error.message, "path": error.path}))
        except NamespaceMissingError as error:
            self.refused = str(error)
            return Answer(503, encode({"error": str(error)}))
        self.refused = ""
        return Answer(200, encode(answer))

    def _sync(self, body: bytes) -> dict[str, Any]:
        answer, decided = sync(Request(body, TApp, self._memo), self._options, self._clock())
        self._on_plan(decided)
        return answer

    def _finalize(self, body: bytes) -> dict[str, Any]:
        return finalize(Request(body, Parent, self._memo), self._options, self._clock())[0]
