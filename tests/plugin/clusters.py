"""Builds clusters with a running TApp behind a fake kubectl, and reads the state that tests
check.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from kubectl_tapp.cluster.session import Session
from tests.builders import manifest, template
from tests.plugin.fake_kubectl import Document, Said, StandIn, kubectl_tapp
from tests.scenarios.life import Life

CAUSE = "kubernetes.io/change-cause"


def running(**spec: Any) -> StandIn:
    """Returns a fake kubectl for a cluster with a running TApp `web` of six instances and a
    template `v2`.

    `spec` has further fields of the TApp's spec.
    """
    pool = {"v2": template("nginx:2")}
    given = {"replicas": 6, "templatePool": pool, **spec}
    return StandIn(Life().apply(manifest(**given)).world)


def spec_of(standin: StandIn) -> Document:
    found: Document = standin.world.get("tapps", "web")["spec"]
    return found


def answering(standin: StandIn, answer: str, *arguments: str) -> Said:
    """Runs the plugin once as a user at a terminal, who answers the question with `answer`.

    Returns the output and the exit code.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "interactive", True)
        return kubectl_tapp(standin, *arguments, stdin=answer)


def uids(standin: StandIn) -> dict[int, str]:
    """Returns instance number -> UID of its pod."""
    pods = standin.world.list("pods")
    return {
        int(each["metadata"]["name"].rpartition("-")[2]): each["metadata"]["uid"] for each in pods
    }


def changed(standin: StandIn, before: dict[int, str]) -> list[int]:
    """Returns the numbers of the instances whose pod is another one than in `before`, a result of
    `uids`.
    """
    now = uids(standin)
    return sorted(id for id in before if before[id] != now.get(id))


def ids_of(standin: StandIn, name: str = "canary") -> list[int]:
    """Returns the numbers of the instances to which `spec.templates` assigns the template
    `name`.
    """
    found = spec_of(standin).get("templates") or {}
    return sorted(int(id) for id, each in found.items() if each == name)


def images(standin: StandIn) -> dict[int, str]:
    """Returns instance number -> image of its pod's first container."""
    return {
        int(pod["metadata"]["name"].rpartition("-")[2]): pod["spec"]["containers"][0]["image"]
        for pod in standin.world.list("pods")
    }


def unvalidated(standin: StandIn, kind: str, edit: Callable[[Document], object]) -> StandIn:
    """Changes all objects of a kind with `edit` without validation; returns the fake kubectl.

    An older API server may have stored such objects.
    """
    for home in standin.world.cluster._objects.values():
        for key, found in list(home.items()):
            if found.get("kind") == kind:
                changed = copy.deepcopy(dict(found))
                edit(changed)
                home[key] = changed
    return standin


def one_sentence(said: Said, *parts: str) -> None:
    """Checks that a call has failed with one line on standard error that contains all of
    `parts`.
    """
    assert said.code != 0
    assert len(said.err.splitlines()) == 1
    assert "internal error of kubectl-tapp" not in said.err
    for part in parts:
        assert part in said.err


def never_ready(standin: StandIn, id: int) -> None:
    """Gives an instance the template `v2`, with which its pod runs but never becomes Ready."""
    standin.world.kubelet.levers.unready_images.add("nginx:2")
    assert kubectl_tapp(standin, "use", "web", "v2", str(id), "-y").code == 0
    standin.world.run(60)
