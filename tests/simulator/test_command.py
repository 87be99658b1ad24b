"""The command line, the consistency check, and the cost of a thousand pods."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pytest
import yaml

from simulator.__main__ import main
from simulator.metacontroller.consistency import problems
from simulator.metacontroller.hook_client import HookError, HttpHook
from simulator.objects.objects import Object
from simulator.world import World
from tests.simulator.fake_hook import FakeHook, controller, group, make_world
from tests.sizes import size


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two versions of a parent, and the arguments to play them."""
    for name, manifest in {
        "controller": controller(),
        "v1": group(2, "web:1"),
        "v2": group(1, "web:2"),
    }.items():
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(manifest))
    manifests = [str(tmp_path / "v1.yaml"), str(tmp_path / "v2.yaml")]
    return [*manifests, "--controller", str(tmp_path / "controller.yaml")]


def test_timeline(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The command plays the files in turn and says what happens, the same way every time."""
    arguments = [*files, "--delete", "--wsgi", "tests.simulator.fake_hook:FakeHook"]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "== apply v2.yaml" in first
    assert "Pod g-0: Running [main web:2 ready]" in first
    assert first.rstrip().endswith("Group g: gone")
    assert main(arguments) == 0
    assert capsys.readouterr().out == first


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


def test_over_http(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """The same, against a server."""
    with make_server(
        "127.0.0.1", 0, FakeHook(), server_class=_Server, handler_class=_Quiet
    ) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert main([*files, "--hook", f"http://127.0.0.1:{server.server_port}"]) == 0
        finally:
            server.shutdown()
            thread.join()
    assert "Pod g-0: Running [main web:2 ready]" in capsys.readouterr().out


def test_no_server() -> None:
    """A hook that cannot be reached is a HookError."""
    with pytest.raises(HookError):
        HttpHook("http://127.0.0.1:9").post("http://x/sync", b"", 1.0)


def _request(world: World) -> Object:
    return [call for call in world.hook_calls if call.hook == "sync"][-1].request


def _rename(request: Object) -> None:
    pods = request["children"]["Pod.v1"]
    pods["g-0"] = pods.pop("default/g-0")


def _steal(request: Object) -> None:
    pod = request["children"]["Pod.v1"]["default/g-0"]
    pod["metadata"]["ownerReferences"][0]["uid"] = "x"


IMPOSSIBLE: dict[str, tuple[Callable[[Object], object], str]] = {
    "key-without-namespace": (_rename, "the key of a v2 request"),
    "owned-by-another": (_steal, "controlled by somebody else"),
    "missing-kind": (lambda r: r["children"].pop("Pod.v1"), "children has the kinds"),
    "finalizing": (lambda r: r.update(finalizing=True), "finalizing should be False"),
    "no-finalizer": (lambda r: r["parent"]["metadata"].pop("finalizers"), "Metacontroller adds"),
    "no-uid": (lambda r: r["parent"]["metadata"].pop("uid"), "metadata.uid is missing"),
    "labels": (
        lambda r: r["children"]["Pod.v1"]["default/g-0"]["metadata"].pop("labels"),
        "selector does not match",
    ),
    "phase": (
        lambda r: r["children"]["Pod.v1"]["default/g-0"]["status"].pop("phase"),
        "phase is None",
    ),
}


@pytest.mark.parametrize(("spoil", "problem"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_impossible_requests(spoil: Callable[[Object], object], problem: str) -> None:
    """Each kind of impossible request is named."""
    world = make_world()
    world.apply(group(1))
    world.settle()
    request = _request(world)
    assert problems(request) == []
    spoil(request)
    assert any(problem in text for text in problems(request))


def test_many_pods_are_cheap() -> None:
    """Creating, rolling and deleting a thousand pods costs seconds of CPU."""
    world = make_world()
    began = time.process_time()
    world.apply(group(size(250, 1000)))
    world.settle()
    world.patch("Group", "g", {"spec": {"image": "web:2"}})
    world.settle()
    world.delete("Group", "g")
    world.settle()
    assert world.list("Pod") == []
    assert time.process_time() - began < size(4, 30)
