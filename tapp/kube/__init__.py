"""Kubernetes objects as JSON, and Kubernetes' own rules; nothing here depends on TApp.

The service, the simulator and the kubectl plugin use these modules.
"""
