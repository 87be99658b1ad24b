"""The program `kubectl` of the demo's shell: passes a call on to the embedded cluster.

For `kubectl tapp`, it starts the plugin, as kubectl does. For `-f FILE`, it sends the content of
the file with the call. Only the standard library is imported, so that the program starts fast: each
command of the plugin makes several calls.
"""

import itertools
import json
import os
import socket
import sys

_STDIN = ("-", "/dev/stdin")


def main(arguments: list[str]) -> int:
    """Sends one call to the process that runs the cluster, and prints the output.

    Returns the exit code of the call. For `kubectl tapp`, the plugin runs instead.
    """
    if arguments[:1] == ["tapp"]:
        os.execvp("kubectl-tapp", ["kubectl-tapp", *arguments[1:]])  # noqa: S606, S607 - the plugin on PATH, as kubectl starts it
    try:
        request = {"arguments": arguments, "stdin": _text(arguments)}
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.environ["TAPP_DEMO_SOCKET"])
        connection.sendall(json.dumps(request).encode() + b"\n")
        for line in connection.makefile():
            part = json.loads(line)
            sys.stdout.write(part.get("out", ""))
            sys.stdout.flush()
            if "code" in part:
                sys.stderr.write(part["err"])
                return int(part["code"])
    return 1


def _text(arguments: list[str]) -> str:
    """Returns the text that a call reads: the content of the file of `-f`, or standard input.

    Returns an empty string if the call reads neither.
    """
    for flag, value in itertools.pairwise(arguments):
        if flag in ("-f", "--filename") and value not in _STDIN:
            with open(value, encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs start time
                return file.read()
    values = [argument.rpartition("=")[2] for argument in arguments]
    return sys.stdin.read() if any(value in _STDIN for value in values) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
