"""Writes the CRD, its JSON Schema and generated documentation: `python -m crds.generate`.

With `--check`, the command only compares the existing files with the texts that it would write.

The CRD comes from `crds.definition`. Its schema combines the models of `tapp.declared`
(`crds.schema`) with Kubernetes' schemas of pods, claims and Services (`crds.kubernetes_schema`).
`crds.json_schema` derives a JSON Schema from the CRD's schema, for editors. `crds.reference`
derives the reference page from the CRD's schema. `crds.troubleshooting` derives the tables of
reasons in docs/troubleshooting.md from `tapp.words.advice`.
"""

import argparse
import sys
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from crds import json_schema, reference, troubleshooting
from crds.definition import custom_resource_definition

PATH: Final = Path(__file__).parent / "tapp.yaml"
JSON_SCHEMA: Final = PATH.with_name("tapp.schema.json")
PAGE: Final = Path(__file__).parents[1] / "docs" / "reference.md"
TROUBLESHOOTING: Final = PAGE.with_name("troubleshooting.md")

HEADER: Final = """\
# Generated: do not edit. Change the modules beside it, then run
#   python -m crds.generate
"""


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which repeated values are written in full, without anchors and aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the name is PyYAML's
        return True


@cache
def render() -> str:
    """Returns the content of the file with the CRD, as YAML with a comment at the top."""
    document = yaml.dump(
        custom_resource_definition(), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
    )
    return HEADER + document


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks all generated files of this package, and returns the exit code.

    `arguments` are those of the command line; None reads them from the process. The exit code is 1
    if `--check` finds an outdated file.
    """
    parser = argparse.ArgumentParser(prog="python -m crds.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if a file is out of date"
    )
    options = parser.parse_args(arguments)
    failed = 0
    known = TROUBLESHOOTING.read_text(encoding="utf-8")
    texts = {
        PATH: render(),
        JSON_SCHEMA: json_schema.render(),
        PAGE: reference.render(),
        TROUBLESHOOTING: troubleshooting.render(known),
    }
    for path, text in texts.items():
        if not options.check:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} is out of date: run python -m crds.generate", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
