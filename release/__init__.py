"""The parts of a release, made from metacontroller/ and nothing else: `make release`."""
