"""The control plane that `make e2e-binaries` builds, pinned by go.mod and go.sum."""
