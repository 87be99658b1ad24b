"""The HTTP service around `tapp`: Metacontroller's hook protocol, settings, logs and metrics."""
