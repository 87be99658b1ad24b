"""The data model: simulated time, kinds, and functions that read Kubernetes objects."""
