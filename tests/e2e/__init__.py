"""End-to-end tests: the service on a real API server, a fake kubelet, the real Metacontroller."""
