"""`python -m hooks [OPTION...]`: the service under gunicorn, which takes the options.

gunicorn reads WEB_CONCURRENCY before any configuration, and ends with a traceback where that is no
number; so what the environment says of the door is read first. Raises SystemExit, with a line.
"""

import os
import sys

from hooks.service import address

address.bind()
address.workers()
serve = [sys.executable, "-m", "gunicorn", "hooks.app:create_app()", *sys.argv[1:]]
os.execv(sys.executable, serve)  # noqa: S606 - this process becomes gunicorn
