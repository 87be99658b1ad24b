"""Texts that a tenant writes once are not multiplied: by templates, records, or instances."""

import json
import tracemalloc

from tapp.declared.beside import MOST_CLAIMS
from tapp.words.vocabulary import INSTANCE, TEMPLATE, TEMPLATE_HASH, UNIQ_HASH
from tests.builders import Document, as_sent, claim_template, request, tapp, template
from tests.reading import desired
from tests.unit.hooks.test_wire_cost import calls, lines
from tests.unit.world import Hook, World

KB = 1024
HOOK = Hook(max_new_pods_bytes=200 * KB)
KEPT = "v1-00000000000000000000"


def record(number: int, **data: object) -> Document:
    """A record of the default template, as an earlier release or somebody else wrote it."""
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "shop",
            "labels": {TEMPLATE_HASH: f"v1-{number:020}"},
            "annotations": {TEMPLATE: "default"},
        },
        "revision": number + 1,
        "data": {"template": template("nginx:0"), **data},
    }


def pod(number: int, revision: int) -> Document:
    """A pod of one of these revisions, in a Service."""
    labels = {
        INSTANCE: str(number),
        TEMPLATE_HASH: f"v1-{revision:020}",
        UNIQ_HASH: f"v1-{revision:020}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{number}", "namespace": "shop", "labels": labels},
        "spec": {"containers": [{"name": "app", "image": "nginx:0"}], "subdomain": "web"},
        "status": {"phase": "Running"},
    }


def kept(replicas: int, revisions: list[Document], *pods: Document) -> bytes:
    """A TApp whose partition keeps all: those without a pod at the first revision."""
    parent = tapp(
        replicas=replicas,
        serviceName="web",
        updateStrategy={"partition": "100%"},
        status={"kept": {KEPT: f"0-{replicas - 1}"}},
    )
    return as_sent(request(parent, pods, revisions=revisions))


def test_the_claim_templates_in_each_record_count() -> None:
    """2,000 templates beside one claim template of 120 KB: 354 KB in, 245 MB out."""
    claim = claim_template()
    claim["metadata"]["annotations"] = {"large": "x" * 60 * KB}
    pool = {f"t{n}": template(f"nginx:{n}") for n in range(12)}
    named = {str(n): f"t{n}" for n in range(12)}
    parent = tapp(replicas=12, templatePool=pool, templates=named, volumeClaimTemplates=[claim])
    world = World(parent, hook=HOOK, history=True)
    found = []
    for _ in range(5):
        answer = world.sync()
        world.kubelet()
        found.append(len(world.revisions))
        assert len(json.dumps(desired(answer, "ControllerRevision"))) < 2000 * KB
    assert found == [4, 8, 12, 12, 12]


def test_mounts_of_what_is_not_there_are_not_gone_through_for_each_instance() -> None:
    """437 KB with 12,000 mounts: 5 ms of CPU for each instance, 250 s for 50,000 of them."""
    mounts = [{"name": f"m{n}", "mountPath": f"/{n}"} for n in range(500)]
    body = template(container={"volumeMounts": mounts})

    def asked(replicas: int) -> int:
        text = as_sent(request(tapp(replicas=replicas, template=body)))
        HOOK.post("/sync", text)
        return lines(lambda: HOOK.post("/sync", text))

    assert asked(40) - asked(20) < 20 * 600


def test_a_revision_looks_at_all_pods_once_for_all_revisions() -> None:
    """The Service of those whose record does not say it: 50 s for 16,000 of each."""

    def asked(count: int) -> int:
        records = [record(number) for number in range(count)]
        text = kept(count, records, *[pod(number, number) for number in range(count)])
        HOOK.post("/sync", text)
        return calls(lambda: HOOK.post("/sync", text))

    assert asked(400) < 2.3 * asked(200)


def test_what_a_record_has_beside_its_template_is_quoted_cut() -> None:
    """A Service's name of 100 KB, for each of 2,000 instances: 204 MB."""
    for beside in (
        {"serviceName": "s" * 100 * KB},
        {"volumeClaimTemplates": [claim_template(f"{n}-{'c' * 2 * KB}") for n in range(50)]},
    ):
        text = kept(400, [record(0, **beside)])
        HOOK.post("/sync", text)
        tracemalloc.start()
        HOOK.post("/sync", text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 25 * KB * KB


def test_a_record_with_more_claim_templates_than_a_tapp_may_have_says_nothing_of_them() -> None:
    """Each of them is looked at for each instance: 1,000 took 2 ms of CPU for an instance."""
    for count, found in ((MOST_CLAIMS, MOST_CLAIMS), (MOST_CLAIMS + 1, 0)):
        claims = [claim_template(f"c{number}") for number in range(count)]
        asked = json.loads(kept(1, [record(0, volumeClaimTemplates=claims)]))
        assert len(desired(HOOK.sync(asked), "PersistentVolumeClaim")) == found


def test_what_two_templates_mean_is_compared_once_for_all_their_pods() -> None:
    """3,000 tolerations took 2 ms of CPU for each pod whose template is only written otherwise."""
    body = template(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(300)])
    world = World(tapp(template=body), history=True).settle()
    (old,) = world.pods.values()
    meta = old["metadata"]
    body["spec"]["restartPolicy"] = "Always"

    def asked(replicas: int) -> int:
        pods = [
            {**old, "metadata": {**meta, "name": f"web-{n}", "uid": f"{n}"}}
            for n in range(replicas)
        ]
        revisions = list(world.revisions.values())
        text = as_sent(request(tapp(replicas=replicas, template=body), pods, revisions=revisions))
        answer = json.loads(HOOK.post("/sync", text).data)
        assert answer["status"]["updatedReplicas"] < replicas  # a label is to change
        return lines(lambda: HOOK.post("/sync", text))

    assert asked(30) - asked(10) < 20 * 4_000
