"""`make release`: builds the files of a release from metacontroller/ and charts/."""
