"""`--dry-run`, as for kubectl."""

from enum import StrEnum


class DryRun(StrEnum):
    """How much of a write is tried."""

    CLIENT = "client"
    SERVER = "server"
