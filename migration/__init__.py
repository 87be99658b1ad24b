"""Moves TApps of the old tapp-controller over: `python -m migration`, see docs/migration.md.

Needs Python's standard library and `kubectl`; whatever reaches your cluster with kubectl does here.
"""

import sys

OLDEST = (3, 9)

# The modules beside this one would end in a SyntaxError or TypeError.
if sys.version_info < OLDEST:
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    sys.exit(f"error: python -m migration needs Python 3.9 or newer; this is {version}")
