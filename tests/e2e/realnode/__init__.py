"""A real node: kubelet, containerd and runc in a separate PID namespace and mount namespace."""
