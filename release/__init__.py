"""What a release consists of, made from metacontroller/ and nothing else: `make release`."""
