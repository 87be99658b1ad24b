"""Tests that requirements.txt, which the image installs, has everything that the service
imports.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOADED = """\
import json, sys
from importlib.metadata import packages_distributions
import hooks.app, hooks.service.cluster, hooks.service.healthcheck, hooks.service.resizes
import gunicorn.workers.ggevent, hooks.service.start, hooks.service.tls
owners, loaded = packages_distributions(), {each.split(".")[0] for each in sys.modules}
print(json.dumps({name: owners.get(name, []) for name in loaded}))
"""
"""Prints the distributions of all modules that a worker has imported."""
BY_ITSELF = {"tapp", "setuptools"}
"""This repository, and a module that a virtualenv imports at every start."""


def spelled(name: str) -> str:
    """Returns the name of a distribution in the normal form in which pip compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_requirements_have_everything_that_a_worker_imports() -> None:
    """Imports the modules of a worker, and compares their distributions with requirements.txt.

    Environments for tests have more packages, which would hide that the image lacks one.
    """
    done = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {spelled(owner) for owners in json.loads(done.stdout).values() for owner in owners}
    text = (ROOT / "requirements.txt").read_text()
    named = {spelled(name) for name in re.findall(r"(?m)^([\w.-]+)==", text)}
    assert {"flask", "gevent", "gunicorn", "packaging"} <= loaded
    assert loaded - named - BY_ITSELF == set()
