"""The API server, and controllers of kube-controller-manager."""
