"""The version of the service, which is also that of the newest entry in CHANGELOG.md."""

VERSION = "0.1.0"
