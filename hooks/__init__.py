"""The HTTP shell around `tapp`: Metacontroller's hook contract, settings, logs, metrics."""
