"""The service's version; CHANGELOG.md's newest entry says the same."""

VERSION = "0.1.0"
