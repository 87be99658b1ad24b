"""Tests rollouts with a partition: their start, checks, and `advance`."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import claim_template, template
from tests.plugin.clusters import CAUSE, running, spec_of
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp


def images(standin: StandIn) -> str:
    """Returns one character for each instance, in order: the last character of its image."""
    pods = [standin.world.get("pods", f"web-{id}") for id in range(6)]
    return "".join(pod["spec"]["containers"][0]["image"][-1] for pod in pods)


def begun(*more: str) -> StandIn:
    """Returns a TApp during a rollout to `nginx:9` that keeps two instances at `nginx:1`.

    `more` are further options of the command that starts the rollout.
    """
    web = running(template=template("nginx:1"))
    said = kubectl_tapp(
        web, "set", "image", "web", "app=nginx:9", "--partition", "2", "-y", "--wait", *more
    )
    assert said.err == ""
    assert said.code == 0
    assert "web: instances 0-3 done" in said.out
    return web


def test_rollout_is_complete_at_its_partition() -> None:
    web = begun()
    assert images(web) == "999911"
    assert spec_of(web)["updateStrategy"] == {"partition": 2}
    cause = web.world.get("tapps", "web")["metadata"]["annotations"][CAUSE]
    assert cause == "kubectl tapp set image web app=nginx:9 in default --partition 2"


@pytest.mark.parametrize(
    ("arguments", "expected", "strategy"),
    [
        (["advance", "web"], "999999", {}),
        (["advance", "web", "--to", "1"], "999991", {"partition": 1}),
        (["advance", "web", "--to", "10%"], "999991", {"partition": "10%"}),
        (["advance", "web", "--to", "0"], "999999", {}),
        (["advance", "web", "--to", "0%"], "999999", {}),
        (["rollback", "web"], "111111", {"partition": 2}),
    ],
    ids=[
        "advance to the end",
        "advance to a number",
        "advance to a percentage",
        "advance to 0",
        "advance to 0%",
        "rollback",
    ],
)
def test_advance_moves_the_partition(
    arguments: list[str], expected: str, strategy: dict[str, int]
) -> None:
    web = begun()
    said = kubectl_tapp(web, *arguments, "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    assert images(web) == expected
    assert spec_of(web)["updateStrategy"] == strategy


def test_advance_refuses_a_larger_partition() -> None:
    web = begun()
    written = web.writes
    for to in ("3", "50%", "100%"):
        said = kubectl_tapp(web, "advance", "web", "--to", to, "-y")
        assert said.code == 2
        assert (
            f"--to {to} keeps more instances than the present partition (2): advance cannot go "
            "back; set spec" in said.err
        )
    for to in ("2", "30%"):
        said = kubectl_tapp(web, "advance", "web", "--to", to, "-y")
        assert said.code == 0
        assert said.lines == ["web: no change needed"]
    assert web.writes == written
    said = kubectl_tapp(web, "advance", "web", "--to", "1", "-y")
    assert "spec.updateStrategy.partition changes from 2 to 1." in said.lines


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["advance", "web", "--to", "3"],
            "web has no partition (spec.updateStrategy.partition), so nothing has to be advanced",
        ),
        (
            ["advance", "web"],
            "web has no partition (spec.updateStrategy.partition), so nothing has to be advanced",
        ),
        (
            ["set", "image", "web", "app=a", "--partition", "x"],
            ("'x' is neither a whole number of at least 0"),
        ),
        (
            ["set", "image", "web", "app=a", "--partition", "1", "--canary", "1"],
            "--canary and --partition cannot be used together",
        ),
        (
            ["set", "image", "web", "app=a", "--partition", "1", "-t", "v2"],
            "--partition applies only to the rolling template 'default', not to template 'v2'",
        ),
    ],
    ids=[
        "no partition, with a number",
        "no partition",
        "no number",
        "partition and canary",
        "template other than the rolling one",
    ],
)
def test_invalid_arguments_are_refused(arguments: list[str], message: str) -> None:
    web = running()
    said = kubectl_tapp(web, *arguments, "-y")
    assert said.code == 2
    assert message in said.err
    assert not web.writes


@pytest.mark.parametrize("to", ["-1", "many", "101%"])
def test_invalid_partition_is_refused(to: str) -> None:
    said = kubectl_tapp(begun(), "advance", "web", "--to", to, "-y")
    assert said.code == 2
    assert f"'{to}' is neither a whole number of at least 0 nor" in said.err


def test_plan_names_the_instances_that_are_kept() -> None:
    web = running(template=template("nginx:1"))
    asked = ["set", "image", "web", "app=nginx:9", "--partition", "50%", "--dry-run=client"]
    said = kubectl_tapp(web, *asked)
    assert said.code == 0
    assert "0-2 (3)  in place   template default: restarts app" in said.out
    assert "3-5 (3)  unchanged  spec.updateStrategy.partition keeps it at revision v1-" in said.out
    assert images(web) == "111111"


def test_plan_supports_a_step_of_a_rollout() -> None:
    web = begun()
    for partition, outcome in (("1", "1 in place"), ("0%", "2 in place"), ("2", "nothing changes")):
        said = kubectl_tapp(web, "plan", "web", "--partition", partition)
        assert said.lines[0].startswith(f"TApp default/web: {outcome}")
    said = kubectl_tapp(web, "plan", "web", "--image", "app=nginx:3", "--partition", "50%")
    assert said.lines[0].startswith("TApp default/web: 3 in place")
    assert (
        "'x' is neither a whole number" in kubectl_tapp(web, "plan", "web", "--partition", "x").err
    )


def test_status_why_and_history_name_kept_instances_and_their_revision() -> None:
    web = begun()
    (revision,) = web.world.get("tapps", "web")["status"]["kept"]
    status = kubectl_tapp(web, "status", "web")
    assert "6 of 6 instances run, 6 are available" in status.out
    assert "the partition keeps instances 4, 5 at an old revision" in status.out
    assert (
        f"each of instances 4, 5: Kept: "
        f"spec.updateStrategy.partition keeps it at revision {revision}" in status.out
    )
    why = kubectl_tapp(web, "why", "web", "5")
    assert (
        f"instance 5: Kept: spec.updateStrategy.partition keeps it at revision {revision}"
        in why.out
    )
    history = kubectl_tapp(web, "history", "web")
    first, second = (line.split() for line in history.lines[1:])
    assert "KEPT" in history.lines[0]
    assert first[0] == "1"
    assert "4,5" in first
    assert second[0] == "*"
    assert "4,5" not in second
    listed = json.loads(kubectl_tapp(web, "history", "web", "-o", "json").out)
    assert [each.get("kept") for each in listed] == ["4,5", None]


def mounting(image: str, *names: str) -> dict[str, Any]:
    """Returns a pod template with this image that mounts the claims with these names."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts})


def applied(web: StandIn, path: Path, verb: str, **spec: Any) -> list[str]:
    """Returns the output lines of `kubectl tapp VERB -f PATH` for a file with these fields in the
    spec.

    The other fields are those of the live TApp; a field that is None is removed.
    """
    kept = {key: value for key, value in {**spec_of(web), **spec}.items() if value is not None}
    document = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "metadata": {"name": "web"}}
    path.write_text(yaml.safe_dump({**document, "spec": kept}))
    said = kubectl_tapp(web, *verb.split(), "-f", str(path))
    assert said.err == ""
    assert said.code == 0
    return said.lines


def test_kept_instance_keeps_its_claims_and_its_service(tmp_path: Path) -> None:
    """Removes a claim template and changes the Service name while the partition keeps an instance.

    The plan and `why` announce that the instance keeps its claim and its Service, and its next pod
    has both.
    """
    both = [claim_template("data"), claim_template("logs")]
    web = running(
        template=mounting("nginx:1", "data", "logs"), volumeClaimTemplates=both, serviceName="old"
    )
    edit = {
        "template": mounting("nginx:9", "data"),
        "volumeClaimTemplates": both[:1],
        "serviceName": "new",
        "updateStrategy": {"partition": 2, "maxUnavailable": 6},
    }
    lines = applied(web, tmp_path / "web.yaml", "plan web", **edit)
    assert (
        "  spec.serviceName changes: existing pods keep their host names; instances that the "
        "partition keeps also keep the old name after a replacement"
    ) in lines
    assert any(
        line.endswith(
            "instances that the partition keeps also keep their claim after a replacement"
        )
        for line in lines
    )
    assert any(
        "4, 5 (2)" in line and "with its claim logs, in Service old" in line for line in lines
    )
    web.world.patch("tapps", "web", {"spec": edit})
    web.world.run(600)
    why = kubectl_tapp(web, "why", "web", "5")
    assert "spec.updateStrategy.partition keeps it at revision" in why.out
    assert "with its claim logs, in Service old" in why.out
    web.world.delete("pods", "web-5")
    web.world.run(60)
    spec = web.world.get("pods", "web-5")["spec"]
    claims = [each.get("persistentVolumeClaim") for each in spec["volumes"]]
    assert [each["claimName"] for each in claims if each] == ["data-web-5", "logs-web-5"]
    assert spec["subdomain"] == "old"
