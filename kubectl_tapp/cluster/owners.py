"""Other writers of a TApp, which would undo an edit soon after it was made."""

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.access import ClusterAccess

SCALERS = "horizontalpodautoscalers.autoscaling"
_BY_KEY = {
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "meta.helm.sh/release-name": "Helm",
}
"""A label or annotation that a tool writes on what it applies -> the tool. Sources: Argo CD
"Resource Tracking", Flux "Kustomization" and "HelmRelease", Helm "Labels and Annotations"."""
_UNDONE = {
    "Argo CD": "its next sync undoes this, unless the Application ignores the difference",
    "Flux": "its next reconciliation undoes this",
    "Helm": "the next upgrade of its release undoes this",
}


def warnings(cluster: ClusterAccess, tapp: Document, *, scaling: bool) -> list[str]:
    """A sentence for each tool that will undo an edit, as far as it can be known.

    Autoscalers are looked for where it is of `spec.replicas` (`scaling`), which they write.
    """
    metadata = tapp["metadata"]
    keys = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    tools = sorted({tool for key, tool in _BY_KEY.items() if key in keys})
    found = [f"{tool} manages this TApp: {_UNDONE[tool]}; change it there, too" for tool in tools]
    return found + (_scalers(cluster, tapp) if scaling else [])


def _scalers(cluster: ClusterAccess, tapp: Document) -> list[str]:
    try:
        scalers = cluster.list(SCALERS)
    except CommandError:
        return []
    result = []
    for each in scalers:
        target = each["spec"].get("scaleTargetRef") or {}
        if target.get("kind") == "TApp" and target.get("name") == tapp["metadata"]["name"]:
            least, most = each["spec"].get("minReplicas", 1), each["spec"].get("maxReplicas")
            result.append(
                f"the HorizontalPodAutoscaler {each['metadata']['name']} sets its replicas "
                f"({least} to {most}) and may undo this"
            )
    return result
