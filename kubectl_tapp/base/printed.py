"""Formats documents for `--output`."""

from typing import Any

import msgspec


def formatted(document: Any, output_format: str) -> str:
    """Returns a document as text in the format `json` or `yaml`, without a newline at the end.

    In both formats the control characters from U+007F to U+009F are escaped, because a terminal may
    execute them.
    """
    plain = msgspec.to_builtins(document)
    if output_format == "json":
        text = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
        return text.translate({code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)})
    import yaml  # noqa: PLC0415 - it costs start time

    text = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return str(text).rstrip("\n")
