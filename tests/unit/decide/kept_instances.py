"""Builds TApps with claims and a partition, whose revisions the history records."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.builders import Document, claim_template, tapp, template
from tests.unit.world import World

Step = Callable[[World], Any]
KEEP_2 = {"partition": 2, "maxUnavailable": 1}


def web_template(tag: int, *mounts: str, **spec: Any) -> Document:
    """Returns a template with the image `web:TAG` that mounts each of the volumes at the path of
    its name.
    """
    found = [{"name": name, "mountPath": f"/{name}"} for name in mounts]
    spec = {"terminationGracePeriodSeconds": tag, **spec}  # no update in place
    return template(f"web:{tag}", container={"volumeMounts": found}, **spec)


def claims(*names: str) -> list[Document]:
    return [claim_template(name) for name in names]


def tapp_with_claims(*names: str, replicas: int = 3, **spec: Any) -> World:
    """Returns a TApp that mounts a claim for each name (by default `data` and `logs`), after it has
    settled.

    `spec` has further fields of its spec.
    """
    names = names or ("data", "logs")
    first = {"template": web_template(1, *names), "volumeClaimTemplates": claims(*names), **spec}
    return World(tapp(replicas=replicas, **first), history=True).settle()


def edit(**spec: Any) -> Step:
    return lambda found: found.change(**spec).settle()


def lose(*ids: int) -> Step:
    def change(found: World) -> None:
        for id in ids:
            del found.pods[f"web-{id}"]
        found.settle()

    return change


def records_of_an_earlier_release(found: World) -> None:
    """Removes all but the template from each ControllerRevision, as an earlier release recorded
    it.
    """
    for record in found.revisions.values():
        record["data"] = {"template": record["data"]["template"]}


NO_LOGS = {
    "template": web_template(2, "data"),
    "volumeClaimTemplates": claims("data"),
    "updateStrategy": KEEP_2,
}


def play(steps: Iterable[Step], found: World) -> World:
    for step in steps:
        step(found)
    return found.settle()


def claims_and_service_of(found: World, id: int) -> str:
    """Returns image tag, volumes and Service of an instance's pod in one line.

    An example is `1 data=data-web-0 logs=logs-web-0 in web`: each volume with its claim, and the
    Service.
    """
    spec = found.pods[f"web-{id}"]["spec"]
    parts = [spec["containers"][0]["image"].rpartition(":")[2]]
    for volume in spec.get("volumes") or []:
        if "persistentVolumeClaim" in volume:
            parts.append(f"{volume['name']}={volume['persistentVolumeClaim']['claimName']}")
        elif not volume["name"].startswith("kube-api-access"):
            parts.append(f"{volume['name']}:{next(key for key in volume if key != 'name')}")
    return " ".join(parts) + (f" in {spec['subdomain']}" if "subdomain" in spec else "")


BOTH_2 = "1 data=data-web-2 logs=logs-web-2"


def recorded(found: World) -> list[Document]:
    """Returns the data of all ControllerRevisions without their templates, by number."""
    ordered = sorted(found.revisions.values(), key=lambda each: each["revision"])
    return [
        {key: each["data"][key] for key in each["data"] if key != "template"} for each in ordered
    ]
