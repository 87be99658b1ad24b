"""`python -m hooks [OPTION...]`: the service under gunicorn, which takes the options.

gunicorn reads WEB_CONCURRENCY before any configuration, and ends with a traceback if that is empty
or no number. So the variables of the door are read here first. Raises SystemExit with a sentence.
"""

import os
import sys

from hooks.service import address

address.bind()
address.workers()
if not os.environ.get("WEB_CONCURRENCY"):
    os.environ.pop("WEB_CONCURRENCY", None)
serve = [sys.executable, "-m", "gunicorn", "hooks.app:create_app()", *sys.argv[1:]]
os.execv(sys.executable, serve)  # noqa: S606 - this process becomes gunicorn
