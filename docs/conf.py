"""Builds README, docs and the like into a site: `make docs`.

The source folder is the repository's root, so that every link that works there works here.
"""

from pathlib import Path

from sphinx.application import Sphinx

from hooks.version import VERSION

project = "TApp"
version = release = VERSION
extensions = ["myst_parser"]
myst_heading_anchors = 4
nitpicky = True

include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/*.md",
    "examples/README.md",
    "tests/e2e/README.md",
    "tests/bench/README.md",
]
root_doc = "docs/index"

html_theme = "furo"
html_title = f"TApp {VERSION}"
html_copy_source = False
html_show_sphinx = False


def _write_front_door(app: Sphinx, error: Exception | None) -> None:
    """The site's own `/` leads to its first page."""
    if error is None:
        page = '<!doctype html><meta http-equiv="refresh" content="0; url=docs/index.html">\n'
        (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("build-finished", _write_front_door)
