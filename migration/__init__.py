"""Moves TApps from the old tapp-controller to Metacontroller: `python -m migration`.

Needs only Python's standard library and `kubectl`. docs/migration.md has the whole procedure.
"""

import sys

OLDEST = (3, 9)

# Older versions of Python could not import the other modules of this package.
if sys.version_info < OLDEST:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.exit(f"error: python -m migration needs Python 3.9 or newer; this is {version}")
