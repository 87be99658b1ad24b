"""An old cluster for calls of the plugin."""

from collections.abc import Sequence

from kubectl_tapp.cluster.kubectl import CallResult
from tests.migration.fake_kubectl import FakeKubectl, old_app


class Old:
    """The substitute for an old cluster (tests/migration), behind the plugin's kubectl."""

    def __init__(self) -> None:
        self.fake: FakeKubectl = old_app()

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs a call of kubectl."""
        assert not stdin
        done = self.fake(["kubectl", *arguments])
        return CallResult(done.code, done.out, done.err)
