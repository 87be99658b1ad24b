"""Simulates a cluster with old TApps, before their migration, for calls of the plugin."""

from collections.abc import Sequence

from kubectl_tapp.cluster.kubectl import CallResult
from tests.migration.fake_kubectl import FakeKubectl, old_app


class Old:
    """Runs the plugin's kubectl calls against the fake old cluster of tests/migration.

    Attributes:
        fake: the fake old cluster, which stores the writes.
    """

    def __init__(self) -> None:
        self.fake: FakeKubectl = old_app()

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs a call of kubectl and returns its output; the call must have no standard input."""
        assert not stdin
        done = self.fake(["kubectl", *arguments])
        return CallResult(done.code, done.out, done.err)
