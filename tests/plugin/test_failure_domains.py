"""Tests what `kubectl tapp` says about failure domains (`updateStrategy.domain`): plan and why."""

from pathlib import Path

import pytest
import yaml

from simulator.node.nodes import ZONE
from tapp.kube.merges import merge_patch
from tests.builders import Document
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.forecasts import differences_between, foretell
from tests.plugin.test_from_files import nowhere
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life

CHANGES = {"new pods": template(container={"command": ["run"]}), "in place": template("nginx:2")}


def in_zones(replicas: int, **strategy: object) -> Life:
    """Returns a TApp that has settled on nodes in the zones a, b and c, in turn."""
    life = Life(zones=["a", "b", "c"])
    life.world.nodes.keeps_zones = True
    body = tapp(
        replicas=replicas, updateStrategy={"domain": ZONE, "maxUnavailable": "100%", **strategy}
    )
    return life.apply(body)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_plan_foretells_the_writes_of_each_zone_in_turn(replicas: int, change: str) -> None:
    life = in_zones(replicas)
    edit: Document = {"spec": {"template": CHANGES[change]}}
    found = foretell(life, merge_patch(life.tapp, edit))
    life.news()
    mark = len(life.world.writes)
    life.patch(template=CHANGES[change])
    happened = [write for write in life.world.writes[mark:] if write.kind != "TApp"]
    assert differences_between(found, happened, life) == []
    zones = {pod["metadata"]["name"]: pod["metadata"]["labels"][ZONE] for pod in life.pods.values()}
    turns = [zones[each.name] for each in found.writes if each.verb in ("update", "delete")]
    assert turns == sorted(turns)


def said_by(life: Life, *words: str) -> str:
    """Runs the plugin on a simulated cluster, and returns its output."""
    return kubectl_tapp(StandIn(life.world), *words).out


def test_plan_and_status_say_that_one_domain_at_a_time_is_updated() -> None:
    life = in_zones(3)
    phrase = f"one failure domain at a time, by the label {ZONE} (updateStrategy.domain)"
    assert phrase in said_by(life, "plan", "web", "--image", "web=web:2")
    assert phrase in said_by(life, "why", "web")
    life.patch(updateStrategy={"domain": None})
    assert "failure domain" not in said_by(life, "why", "web")


def test_why_names_the_instances_and_the_domain_that_an_instance_waits_for() -> None:
    life = in_zones(6)
    life.world.kubelet.levers.unready_images.add("web:2")
    life.begin_patch(template=template("web:2"))
    life.world.run(15.0)
    said = said_by(life, "why", "web", "5")
    assert "instance 5: WaitingForDomain: the update waits until instances" in said
    assert "of domain b (spec.updateStrategy.domain: " in said


def test_plan_of_files_says_that_it_knows_no_zones(tmp_path: Path) -> None:
    old = tapp(replicas=2, updateStrategy={"domain": ZONE})
    (tmp_path / "old").write_text(yaml.safe_dump(old))
    edited = {**old, "spec": {**old["spec"], "template": template("web:2")}}
    (tmp_path / "new").write_text(yaml.safe_dump(edited))
    words = ["plan", "--from", str(tmp_path / "old"), "-f", str(tmp_path / "new")]
    said = kubectl_tapp(nowhere(), *words).out
    assert f"nodes are assumed to have no label {ZONE}, so each instance is updated alone" in said


def test_plan_of_files_knows_the_labels_of_the_template(tmp_path: Path) -> None:
    def made(image: str) -> Document:
        body = template(image)
        body["metadata"]["labels"]["rack"] = "$(tapp.values.rack)"
        return tapp(
            replicas=4,
            template=body,
            defaultValues={"rack": "r1"},
            values={"3": {"rack": "r2"}},
            updateStrategy={"domain": "rack", "maxUnavailable": "100%"},
        )

    for name, image in (("old", "web:1"), ("new", "web:2")):
        (tmp_path / name).write_text(yaml.safe_dump(made(image)))
    words = ["plan", "--from", str(tmp_path / "old"), "-f", str(tmp_path / "new")]
    said = kubectl_tapp(nowhere(), *words).out
    assert "nodes are assumed" not in said
    assert "update in place 0-2" in said
    assert "update in place 3" in said


def test_restart_waits_for_another_domain() -> None:
    """A person may restart instances of one zone only while those of all others are available."""
    life = in_zones(3)
    life.world.kubelet.levers.unready_images.add("web:2")
    life.begin_patch(templatePool={"other": template("web:2")}, templates={"1": "other"})
    life.world.run(20.0)
    said = kubectl_tapp(StandIn(life.world), "restart", "web", "0", "-y", "--timeout", "3s")
    assert "instance 1 of domain b" in said.err
