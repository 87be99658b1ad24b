"""Checks of the cluster before the migration writes; each message says what to do."""

from __future__ import annotations  # for Python 3.9

from collections.abc import Iterable

from migration.kubectl import Kubectl, KubectlError

OLD_CONTROLLER = "tapp-controller"
OLD_NAMESPACE = "kube-system"  # The namespace in the old controller's manifest
OLD_WEBHOOK = "tapp-admission"
COMPOSITE = "tapp-controller"


def old_controller(kubectl: Kubectl, namespaces: Iterable[str]) -> tuple[list[str], list[str]]:
    """Looks for a running old tapp-controller; returns (problems, warnings).

    If the user may not list Deployments in all namespaces, only kube-system and `namespaces` are
    searched, and a warning says so.
    """
    only = f"--field-selector=metadata.name={OLD_CONTROLLER}"
    warnings = []
    try:
        found = kubectl.list("deployments.apps", None, only)
    except KubectlError as everywhere:
        if everywhere.reason != "Forbidden":
            raise
        found, hidden = [], []
        for namespace in sorted({OLD_NAMESPACE, *namespaces}):
            try:
                found += kubectl.list("deployments.apps", namespace, only)
            except KubectlError as error:
                if error.reason != "Forbidden":
                    raise
                hidden.append(namespace)
        where = f" (and not at all in {', '.join(hidden)})" if hidden else ""
        warnings.append(
            f"you may not list Deployments in all namespaces{where}: make sure that the old "
            "tapp-controller does not run"
        )
    problems = []
    for deployment in found:
        wanted = (deployment.get("spec") or {}).get("replicas", 1)
        ready = (deployment.get("status") or {}).get("readyReplicas") or 0
        if wanted or ready:
            namespace = deployment["metadata"]["namespace"]
            problems.append(
                f"the old controller is not stopped: Deployment {namespace}/{OLD_CONTROLLER} has "
                f"{ready} of {wanted} replicas ready. Two controllers would change the same pods. "
                "Stop the old one: "
                f"kubectl scale deployment {OLD_CONTROLLER} -n {namespace} --replicas=0"
                f"{kubectl.target}"
            )
    return problems, warnings


def old_webhook(kubectl: Kubectl) -> list[str]:
    """Returns a list with one warning if the old controller's admission webhook is registered.

    Without its controller, this webhook refuses every write to a TApp. The list is empty if the
    webhook does not exist.
    """
    resource = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    try:
        found = kubectl.find(resource, "", OLD_WEBHOOK)
    except KubectlError as error:
        return [
            "the old admission webhook cannot be looked for: make sure that "
            f"ValidatingWebhookConfiguration {OLD_WEBHOOK} does not exist ({error})"
        ]
    if found is None:
        return []
    return [
        f"the old controller's admission webhook is still registered. Without its controller it "
        "refuses every write to a TApp, also Metacontroller's. Remove it: "
        f"kubectl delete validatingwebhookconfiguration {OLD_WEBHOOK}{kubectl.target}"
    ]


def active_composite(kubectl: Kubectl) -> tuple[list[str], list[str]]:
    """Checks that the CompositeController is not installed yet; returns (problems, warnings).

    There is a problem if the CompositeController exists, and a warning if the user may not read it.
    """
    try:
        found = kubectl.find("compositecontrollers.metacontroller.k8s.io", "", COMPOSITE)
    except KubectlError as error:
        if error.reason == "Forbidden":
            return [], [f"you may not read CompositeControllers: make sure that {COMPOSITE!r} "
                        "does not exist yet"]  # fmt: skip
        raise
    if found is None:
        return [], []
    return [
        f"the CompositeController {COMPOSITE!r} exists already. If Metacontroller runs, it has "
        "removed the TApp as owner of all pods and claims that lack the label, and cannot replace "
        "these pods. If there are such pods, delete the CompositeController, which stops no pod: "
        f"kubectl delete compositecontroller {COMPOSITE}{kubectl.target}. Run this command again, "
        "label the pods without an owner with the commands that it prints, and then install the "
        "CompositeController again"
    ], []
