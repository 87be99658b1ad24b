"""Writes the CRD file: `python -m crds.generate`; with --check it only compares.

The definition (`crds.definition`) holds the schema, whose parts are in `crds.schema` (fields),
`crds.rules` (CEL) and `crds.kubernetes_schema` (pod and claim templates).
"""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from crds.definition import custom_resource_definition

PATH: Final = Path(__file__).parent / "tapp.yaml"

HEADER: Final = """\
# Generated: do not edit. Change the modules beside it, then run
#   python -m crds.generate
"""


class _Dumper(yaml.SafeDumper):
    """Writes every value in full: the API server's YAML needs no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the name is PyYAML's
        return True


def render() -> str:
    """The text of the CRD file."""
    document = yaml.dump(
        custom_resource_definition(), Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
    )
    return HEADER + document


def main(arguments: list[str] | None = None) -> int:
    """Writes or checks the file; the exit status is 1 where the check fails."""
    parser = argparse.ArgumentParser(prog="python -m crds.generate", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the file is out of date"
    )
    options = parser.parse_args(arguments)
    text = render()
    if not options.check:
        PATH.write_text(text, encoding="utf-8")
        print(f"wrote {PATH}")
        return 0
    if PATH.exists() and PATH.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PATH} is out of date: run python -m crds.generate", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
