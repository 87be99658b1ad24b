"""Tests that texts and lists which a user writes once do not multiply the cost with the number of
templates, revisions or instances.
"""

import json
import tracemalloc

from tapp.declared.claims_and_service import MOST_CLAIMS
from tapp.words.vocabulary import INSTANCE, TEMPLATE, TEMPLATE_HASH, UNIQ_HASH
from tests.builders import Document, as_sent, claim_template, request, tapp, template
from tests.counting import calls, lines
from tests.hook_calls import desired
from tests.unit.world import Hook, World

KB = 1024
HOOK = Hook(max_new_pods_bytes=200 * KB)
KEPT = "v1-00000000000000000000"


def revision_of(number: int, **data: object) -> Document:
    """Returns a ControllerRevision of the default template, as an earlier release or a user may
    have made it.

    `number` is in its name and its revision label; `data` has further fields of the record.
    """
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


def pod_of_revision(number: int, revision: int) -> Document:
    """Returns the pod of instance `number` with the revision label that `revision_of(revision)`
    has.

    The pod has the subdomain `web`, the name of the Service.
    """
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


def request_with_kept_instances(replicas: int, revisions: list[Document], *pods: Document) -> bytes:
    """Returns the body of a request with a partition of 100%, which keeps all instances at one
    revision.

    `revisions` are the ControllerRevisions of the request, and `pods` its pods.
    """
    parent = tapp(
        replicas=replicas,
        serviceName="web",
        updateStrategy={"partition": "100%"},
        status={"kept": {KEPT: f"0-{replicas - 1}"}},
    )
    return as_sent(request(parent, pods, revisions=revisions))


def test_claim_templates_in_revisions_count_for_the_size_limit() -> None:
    """Twelve templates with a large claim template need twelve revisions, which several responses
    create.

    A request of 354 KB with 2,000 templates and a large claim template once caused 245 MB.
    """
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


def test_unknown_mounts_are_checked_once_and_not_for_each_instance() -> None:
    """Adds twenty instances of a template with 500 invalid mounts: few more lines of code are
    executed.

    With 12,000 mounts, each instance once took 5 ms of CPU time.
    """
    mounts = [{"name": f"m{n}", "mountPath": f"/{n}"} for n in range(500)]
    body = template(container={"volumeMounts": mounts})

    def asked(replicas: int) -> int:
        text = as_sent(request(tapp(replicas=replicas, template=body)))
        HOOK.post("/sync", text)
        return lines(lambda: HOOK.post("/sync", text))

    assert asked(40) - asked(20) < 20 * 600


def test_pods_are_visited_once_for_all_revisions_without_a_service_name() -> None:
    """Twice as many pods and revisions cost at most 2.3 times as many calls.

    If a revision has no Service name, the service takes it from the pods. With 16,000 pods and
    revisions, that once took 50 s.
    """

    def asked(count: int) -> int:
        records = [revision_of(number) for number in range(count)]
        text = request_with_kept_instances(
            count, records, *[pod_of_revision(number, number) for number in range(count)]
        )
        HOOK.post("/sync", text)
        return calls(lambda: HOOK.post("/sync", text))

    assert asked(400) < 2.3 * asked(200)


def test_long_texts_in_a_revision_are_shortened_in_messages() -> None:
    """A sync with a long Service name or long claim names in a revision takes less than 25 MiB of
    memory.

    A Service name of 100 KB was once quoted for each of 2,000 instances, which took 204 MB.
    """
    for beside in (
        {"serviceName": "s" * 100 * KB},
        {"volumeClaimTemplates": [claim_template(f"{n}-{'c' * 2 * KB}") for n in range(50)]},
    ):
        text = request_with_kept_instances(400, [revision_of(0, **beside)])
        HOOK.post("/sync", text)
        tracemalloc.start()
        HOOK.post("/sync", text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 25 * KB * KB


def test_revision_with_too_many_claim_templates_counts_as_one_without() -> None:
    """Up to the limit, a claim is created for each claim template of the revision, and beyond the
    limit none.

    Each claim template is checked for each instance, so their number needs a limit.
    """
    for count, found in ((MOST_CLAIMS, MOST_CLAIMS), (MOST_CLAIMS + 1, 0)):
        claims = [claim_template(f"c{number}") for number in range(count)]
        asked = json.loads(
            request_with_kept_instances(1, [revision_of(0, volumeClaimTemplates=claims)])
        )
        assert len(desired(HOOK.sync(asked), "PersistentVolumeClaim")) == found


def test_two_equivalent_templates_are_compared_once_for_all_their_pods() -> None:
    """Adds twenty pods of a template with 300 tolerations: few more lines of code are executed.

    The template and its older revision make the same pod. With 3,000 tolerations, their comparison
    once took 2 ms of CPU time for each pod.
    """
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
        assert answer["status"]["updatedReplicas"] < replicas  # labels still have to change
        return lines(lambda: HOOK.post("/sync", text))

    assert asked(30) - asked(10) < 20 * 4_000
