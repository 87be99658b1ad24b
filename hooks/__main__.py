"""`python -m hooks [OPTION...]`: starts the service under gunicorn, which takes the options.

gunicorn reads WEB_CONCURRENCY before any configuration, and ends with a traceback if it is empty or
no number. So this module checks the variables of the address first. Raises SystemExit with a
sentence for the user if one is invalid.
"""

import os
import sys

from hooks.service import address

address.strip_variables()
address.bind()
address.workers()
if not os.environ.get("WEB_CONCURRENCY"):
    os.environ.pop("WEB_CONCURRENCY", None)
serve = [sys.executable, "-m", "gunicorn", "hooks.app:create_app()", *sys.argv[1:]]
os.execv(sys.executable, serve)  # noqa: S606 - this process becomes gunicorn
