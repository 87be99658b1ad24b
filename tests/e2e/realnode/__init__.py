"""A real node: kubelet, containerd and runc in a PID and a mount namespace of their own."""
