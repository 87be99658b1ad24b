"""Nodes, kubelets and what a pod does on them."""
