"""How large a test is: as small as still notices what it is for, or whole with `FULL=1`.

`make test` runs the small ones, and so does a mutation run; `make full` runs all tests whole.
"""

import os

FULL = os.environ.get("FULL") == "1"


def size(small: int, full: int) -> int:
    """How many there are, in this run."""
    return full if FULL else small
