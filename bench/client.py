"""The client, in a process of its own: prebuilt bytes through plain sockets, one thread for each.

`python -m bench.client JOB` (JSON, see `Job`) prints a `Figures` as JSON.
"""

import socket
import subprocess
import sys
import threading
import time

import msgspec

from bench.server import HOST, ROOT

OK = b"HTTP/1.1 200 "


class Job(msgspec.Struct):
    """What to send.

    Attributes:
        port: where to.
        path: endpoint.
        files: bodies, taken in turn; none for a GET.
        connections: how many at once, all kept alive.
        requests: how many in all.
        seconds: when to stop, finished or not.
        pause: seconds between two requests of a connection.
        anew: a new connection for each request, as a kubelet's probe makes it.
    """

    port: int
    path: str
    files: list[str] = []
    connections: int = 1
    requests: int = 1_000_000
    seconds: float = 30.0
    pause: float = 0.0
    anew: bool = False


class Figures(msgspec.Struct):
    """What was measured.

    Attributes:
        milliseconds: of each request, from its first byte sent to its answer's last byte read.
        per_second: requests answered, all connections together.
    """

    milliseconds: list[float]
    per_second: float

    def quantile(self, share: float) -> float:
        """The time that this share of the requests did not exceed."""
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def start(job: Job) -> subprocess.Popen[bytes]:
    """A client process that does the job."""
    command = [sys.executable, "-m", "bench.client", msgspec.json.encode(job).decode()]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)  # noqa: S603 - ourselves


def result(process: subprocess.Popen[bytes]) -> Figures:
    """Its figures, when it has finished."""
    written, _ = process.communicate()
    if process.returncode:
        raise SystemExit("the benchmark's client failed")
    return msgspec.json.decode(written, type=Figures)


def run(job: Job) -> Figures:
    """Does the job in a process of its own."""
    return result(start(job))


class _Connection:
    """A keep-alive connection that knows no more HTTP than needed."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(1 << 20))

    def exchange(self, message: bytes) -> None:
        """Sends a request, and reads its answer to the end."""
        self._socket.sendall(message)
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._read()
        top, _, rest = head.partition(b"\r\n\r\n")
        if not top.startswith(OK):
            raise SystemExit(f"unexpected answer: {head[:300]!r}")
        _, _, length = top.lower().partition(b"content-length:")
        missing = int(length.split(b"\r\n")[0]) - len(rest)
        while missing > 0:
            missing -= len(self._read())

    def _read(self) -> bytes:
        size = self._socket.recv_into(self._buffer)
        if not size:
            raise SystemExit("the service closed the connection")
        return bytes(self._buffer[:size])

    def close(self) -> None:
        """Hangs up."""
        self._socket.close()


def _work(job: Job) -> Figures:
    messages = _messages(job)
    times: list[float] = []
    numbers = iter(range(job.requests))
    lock = threading.Lock()
    ready = threading.Barrier(job.connections + 1)
    broken: list[BaseException] = []

    def loop(thread: int) -> None:
        try:
            connection = _Connection(job.port)
            connection.exchange(messages[thread % len(messages)])
            ready.wait()
            stop = time.perf_counter() + job.seconds
            while time.perf_counter() < stop:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                started = time.perf_counter()
                if job.anew:
                    connection.close()
                    connection = _Connection(job.port)
                connection.exchange(messages[number % len(messages)])
                times.append((time.perf_counter() - started) * 1e3)
                if job.pause:
                    time.sleep(job.pause)
            connection.close()
        except BaseException as error:
            broken.append(error)
            ready.abort()
            raise

    threads = [threading.Thread(target=loop, args=(index,)) for index in range(job.connections)]
    for thread in threads:
        thread.start()
    ready.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    if broken:
        raise SystemExit(f"a connection failed: {broken[0]!r}")
    return Figures(times, len(times) / (time.perf_counter() - started))


def _messages(job: Job) -> list[bytes]:
    """The requests, head and body in one piece."""
    if not job.files:
        close = "Connection: close\r\n" if job.anew else ""
        return [f"GET {job.path} HTTP/1.1\r\nHost: bench\r\n{close}\r\n".encode()]
    messages = []
    for file in job.files:
        with open(file, "rb") as source:  # noqa: PTH123 - the client imports as little as it can
            body = source.read()
        head = (
            f"POST {job.path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        messages.append(head.encode() + body)
    return messages


if __name__ == "__main__":
    figures = _work(msgspec.json.decode(sys.argv[1], type=Job))
    sys.stdout.buffer.write(msgspec.json.encode(figures))
