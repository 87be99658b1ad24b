"""Kubernetes objects as JSON, and the rules of Kubernetes, of simulator and plugin too; no TApp."""
