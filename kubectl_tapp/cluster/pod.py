"""Tells whether kubectl uses the service account of the pod that this process runs in.

kubectl does so if no kubeconfig names a cluster, by client-go's rules for the in-cluster
configuration. Source: k8s.io/client-go, tools/clientcmd, `inClusterClientConfig` and
`DeferredLoadingClientConfig.Namespace`.
"""

import os
from pathlib import Path

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SERVICE = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def is_pod() -> bool:
    """Returns True if this process runs in a pod with a service account that kubectl can use."""
    return all(os.environ.get(each) for each in _SERVICE) and (_ACCOUNT / "token").is_file()


def pod_namespace() -> str:
    """Returns the namespace that kubectl uses in the pod of this process; "" if the process runs in
    no pod.

    Also returns "" if the file with the namespace cannot be read.
    """
    if not is_pod():
        return ""
    if named := os.environ.get("POD_NAMESPACE"):
        return named
    try:
        return (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
