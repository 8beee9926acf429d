"""Clients of a server: closed loops of streamed completions over raw sockets, timed frame by frame."""
import dataclasses
import json
import socket
import threading
import time


@dataclasses.dataclass
class Reply:
    """What one request saw; times in seconds since it was sent."""
    first: float = 0.0
    gaps: list = dataclasses.field(default_factory=list)
    times: list = dataclasses.field(default_factory=list)  # of each piece of text, by the clock
    text: str = ""
    error: str = ""
    seconds: float = 0.0
    tokens: int = 0  # as the reply's usage has them


class Frames:
    """The events of a chunked reply, as lines come."""

    def __init__(self, connection):
        self.file = connection.makefile("rb", buffering=1 << 16)
        self.status = int(self.file.readline().split()[1])
        self.is_chunked = False
        length = 0
        while (line := self.file.readline().strip()):
            name, _, value = line.partition(b":")
            if name.lower() == b"transfer-encoding":
                self.is_chunked = b"chunked" in value.lower()
            elif name.lower() == b"content-length":
                length = int(value)
        self.body = b"" if self.is_chunked else self.file.read(length)

    def lines(self):
        rest = b""
        while True:
            size = int(self.file.readline().split(b";")[0] or b"0", 16)
            if size == 0:
                self.file.readline()
                return
            rest += self.file.read(size)
            self.file.read(2)
            *whole, rest = rest.split(b"\n")
            yield from whole


def complete(port, body, on_text=None):
    """Streams one completion; `on_text(count)` is called behind every piece of text."""
    reply = Reply()
    payload = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    head = (f"POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"content-length: {len(payload)}\r\nconnection: close\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.perf_counter()
        connection.sendall(head + payload)
        frames = Frames(connection)
        if not frames.is_chunked:
            reply.error = f"{frames.status} {frames.body[:200]!r}"
            return reply
        last = None
        for line in frames.lines():
            if not line.startswith(b"data: ") or line == b"data: [DONE]":
                continue
            now = time.perf_counter()
            frame = json.loads(line[6:])
            if "error" in frame:
                reply.error = str(frame["error"])
                break
            if frame.get("usage"):
                reply.tokens = frame["usage"]["completion_tokens"]
            if not frame["choices"] or not frame["choices"][0]["text"]:
                continue
            reply.text += frame["choices"][0]["text"]
            reply.times.append(now)
            if last is None:
                reply.first = now - start
            else:
                reply.gaps.append(now - last)
            last = now
            if on_text:
                on_text(len(reply.times))
        reply.seconds = time.perf_counter() - start
    return reply


def closed_loop(port, bodies_of_clients):
    """Every client sends its bodies one after the other; all at once. (replies, seconds of the whole)"""
    replies = [[] for _ in bodies_of_clients]

    def run(index):
        for body in bodies_of_clients[index]:
            replies[index].append(complete(port, body))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(bodies_of_clients))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [reply for one in replies for reply in one], time.perf_counter() - start


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
