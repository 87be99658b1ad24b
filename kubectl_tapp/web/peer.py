"""Finds out which user's browser has opened a connection, from the kernel's table of TCP sockets.

Other users of a Linux machine can read the browser's command line, which contains an address for
one use. So the server accepts this address only if the client's socket belongs to the server's own
user, or to root. Root is accepted because programs of root forward ports in WSL and in containers.
Refusing root would protect nothing, since root may do everything on the machine.
"""

import ipaddress
import os
import platform
import sys
from pathlib import Path

_TABLES = "/proc/net/tcp", "/proc/net/tcp6"
_ESTABLISHED = "01"
_LOOPBACK = "127.0.0.1", "::ffff:127.0.0.1"


def may_be_same_user(client: int, server: int) -> bool:
    """Returns True if the socket of a client may belong to the user of the server, or to root.

    `client` and `server` are the ports of both ends, on 127.0.0.1. Only Linux has the table of
    sockets, so the result is True on other systems. In WSL the table does not contain the sockets
    of a Windows browser. So the result there is also True if the socket is not in the table.
    """
    if sys.platform != "linux":
        return True
    owner = owner_of(client, server)
    return owner in (os.geteuid(), 0) if owner is not None else is_wsl()


def owner_of(client: int, server: int) -> int | None:
    """Returns the id of the user who owns the socket of a client; None if the socket is not in the
    table.

    `client` and `server` are the ports of both ends. Only established connections count: a client
    that has closed its socket cannot read the response anyway.
    """
    ports = f":{client:04X}", f":{server:04X}"
    ends = [tuple(_as_in_table(address) + port for port in ports) for address in _LOOPBACK]
    for table in _TABLES:
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:  # Hardened kernels hide the table, and a machine may have no IPv6.
            continue
        for line in lines:
            _, local, remote, state, _, _, _, uid, *_ = line.split()
            if (local, remote) in ends and state == _ESTABLISHED:
                return int(uid)
    return None


def _as_in_table(address: str) -> str:
    """Returns an IP address in the form of the kernel's table: 32-bit words in hexadecimal.

    The bytes of each word are in the machine's byte order.
    """
    packed = ipaddress.ip_address(address).packed
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words)


def is_wsl() -> bool:
    """Returns True if this process runs in the Windows Subsystem for Linux."""
    return "microsoft" in platform.release().lower()
