"""Runs the plugin in a separate process, with a shell script in place of kubectl."""

import json
import sys
from pathlib import Path

import pytest

from tests.plugin.fake_kubectl import Document
from tests.plugin.states import web
from tests.scenarios.life import Life

ROOT = Path(__file__).parents[2]
KUBECTL = """#!/bin/sh
case " $* " in
  *" get tapps.apps.tkestack.io web "*) cat {place}/tapp.json ;;
  *" get tapps.apps.tkestack.io slow "*) touch {place}/asked; sleep 60 ;;
  *" get pods "*) cat {place}/pods.json ;;
  *" patch "*" --dry-run=server "*) cat {place}/tapp.json ;;
  *" patch "*) touch {place}/patched; cat {place}/tapp.json ;;
  *" get deployments.apps "*) echo 'Error from server (NotFound): not found' >&2; exit 1 ;;
  *) echo '{{"items": []}}' ;;
esac
"""
"""A shell script that replaces kubectl and responds with files; `{place}` is their directory."""
ENTRY = """import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from kubectl_tapp.entry import main; main()"""
"""Python code that runs the installed program.

Ctrl-C reaches the program even if the tests run in the background, where shells ignore SIGINT.
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with the script that replaces kubectl, and the objects with which it
    responds.

    The TApp has a template whose name has a letter outside ASCII.
    """
    where = tmp_path_factory.mktemp("bin")
    pool = {"défaut": web()["spec"]["template"]}
    life = Life().apply(web(defaultTemplateName="défaut", templatePool=pool))
    put(where / "tapp.json", life.tapp)
    put(where / "pods.json", {"items": life.world.list("Pod")})
    script = where / "kubectl"
    script.write_text(KUBECTL.format(place=where))
    script.chmod(0o755)
    return where


def put(file: Path, document: Document) -> None:
    """Writes a document to a file as JSON."""
    file.write_text(json.dumps(document), encoding="utf-8")


def command(*arguments: str) -> list[str]:
    """Returns the command line that runs the plugin with these arguments."""
    return [sys.executable, "-c", ENTRY, *arguments]


def environment_of(place: Path, **variables: str) -> dict[str, str]:
    """Returns the environment variables for a call: the script in `place` is found as kubectl.

    `variables` are added.
    """
    path = f"{place}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(place), "LC_ALL": "C.UTF-8", **variables}
