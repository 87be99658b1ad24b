"""Kubernetes objects as JSON: canonical forms, images, tolerations, projections; no TApp in it."""
