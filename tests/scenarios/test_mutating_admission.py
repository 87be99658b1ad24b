"""Tests that admission that changes pods causes the same writes as on a real API server.

The counterparts are tests/e2e/test_mutating_admission.py and test_policies.py.
"""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.admission import Policy, lean_pods
from tests.policies import inject_sidecar, rewrite_images
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life, each

Document = dict[str, Any]


def mirrored(image: str) -> str:
    """Returns the name of an image with `mirror/` before it, once."""
    return image if image.startswith("mirror/") else f"mirror/{image}"


def only_new(policy: Policy) -> Policy:
    """Returns an admission policy that applies `policy` to new objects only."""
    return lambda operation, obj: policy(operation, obj) if operation == "CREATE" else obj


def with_atomic_lists(image: str) -> Document:
    """Returns a pod template with lists that Metacontroller replaces as a whole.

    The API server adds defaults to the items of these lists, such as `expirationSeconds`.
    """
    sources = [{"serviceAccountToken": {"path": "token"}}]
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "matchLabelKeys": ["tapp_uniq_hash_key"],
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    return template(
        image,
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        topologySpreadConstraints=[spread],
        volumes=[{"name": "all", "projected": {"sources": sources}}],
    )


def with_repeated_variable(image: str) -> Document:
    """Returns a pod template with an environment variable that is set twice."""
    values = [("A", "1"), ("B", "2"), ("A", "3")]
    return template(image, container={"env": [{"name": n, "value": v} for n, v in values]})


PROXY = {"name": "proxy", "image": "proxy:1"}
SIDECAR = only_new(inject_sidecar(PROXY))
CASES: dict[str, tuple[list[Policy], Callable[[str], Document], tuple[int, int], str]] = {
    "no admission": ([], template, (0, 0), "web:2"),
    "defaults in atomic lists": ([], with_atomic_lists, (1, 0), "web:2"),
    "repeated environment variable": ([], with_repeated_variable, (0, 0), "web:2"),
    "sidecar first": ([SIDECAR], template, (0, 0), "web:2"),
    "images rewritten at creation": (
        [only_new(rewrite_images(mirrored))],
        template,
        (1, 0),
        "web:2",
    ),
    "images rewritten at every write": (
        [rewrite_images(mirrored)],
        template,
        (1, 1),
        "mirror/web:2",
    ),
    "lean pods": ([lean_pods], template, (0, 0), "web:2"),
    "lean pods, defaults in atomic lists": ([lean_pods], with_atomic_lists, (0, 0), "web:2"),
    "lean pods, images rewritten at every write": (
        [lean_pods, rewrite_images(mirrored)],
        template,
        (0, 0),
        "mirror/web:2",
    ),
}


@pytest.mark.parametrize(
    ("policies", "made", "more_writes", "image"), CASES.values(), ids=CASES.keys()
)
def test_creation_and_update_under_admission_cause_the_expected_writes(
    policies: list[Policy],
    made: Callable[[str], Document],
    more_writes: tuple[int, int],
    image: str,
) -> None:
    """Creates a TApp and changes its image in place; each pod has the expected number of writes.

    `more_writes` has the numbers of additional writes that record the stored form of new and of
    updated pods.
    """
    life = Life(policies=policies).apply(tapp(replicas=2, template=made("web:1")))
    names = ("web-0", "web-1")
    updates = each("update Pod", *names)
    assert sorted(life.writes()) == sorted(each("create Pod", *names) + updates * more_writes[0])
    born = life.uids()
    life.patch(template=made("web:2"))
    assert sorted(life.writes()) == sorted(updates + updates * more_writes[1])
    shown = {
        container["image"]
        for pod in life.pods.values()
        for container in pod["spec"]["containers"]
        if container["name"] == "web"
    }
    assert shown == {image}
    assert life.uids() == born
    assert set(life.restarts().values()) == {1}
    life.idle()
    assert life.news() == []
