"""Tests kept instances in the simulator: the API server accepts their new pods, which then run.

A partition keeps such an instance at an older revision.
"""

from typing import Any

import pytest

from tests.builders import Document, claim_template, manifest, template
from tests.scenarios.life import Life


def mounting(image: str, *names: str, **spec: Any) -> Document:
    """Returns a pod template that mounts the volumes with these names."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts}, **spec)


def claims_of(life: Life, id: int) -> list[str]:
    """Returns the names of the claims that an instance's pod uses."""
    found = [each.get("persistentVolumeClaim") for each in life.pods[id]["spec"]["volumes"]]
    return [each["claimName"] for each in found if each]


DATA = [claim_template("data")]
BOTH = [*DATA, claim_template("logs")]
CACHE = [{"name": "logs", "emptyDir": {}}]
EDITS = {
    "claim removed": {"template": mounting("web:2", "data"), "volumeClaimTemplates": DATA},
    "claim renamed": {
        "template": mounting("web:2", "data", "files"),
        "volumeClaimTemplates": [*DATA, claim_template("files")],
    },
    "claim becomes an emptyDir": {
        "template": mounting("web:2", "data", "logs", volumes=CACHE),
        "volumeClaimTemplates": DATA,
    },
    "all claims removed": {"template": template("web:2"), "volumeClaimTemplates": None},
}


@pytest.mark.parametrize("policy", ["Parallel", "OrderedReady"])
@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_kept_instances_are_recreated_with_the_claims_of_their_revision(
    edit: Document, policy: str
) -> None:
    """Edits the claim templates while a partition keeps four of five instances at the earlier
    revision.

    One of them loses its pod, one is killed and started, and two are new: each gets the earlier
    claims.
    """
    life = Life().apply(
        manifest(
            replicas=3,
            template=mounting("web:1", "data", "logs"),
            volumeClaimTemplates=BOTH,
            podManagementPolicy=policy,
        )
    )
    life.patch(**edit, replicas=5, updateStrategy={"partition": 4, "maxUnavailable": 5})
    life.world.delete("pods", "web-2")
    life.settle().patch(statuses={"1": "Killed"}).patch(statuses={"1": None})
    assert life.images() == "web:2 web:1 web:1 web:1 web:1"
    for id in range(1, 5):
        assert claims_of(life, id) == [f"data-web-{id}", f"logs-web-{id}"]
    assert life.complete
