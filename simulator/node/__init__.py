"""Nodes: the scheduler, the kubelets, and the pods that they run."""
