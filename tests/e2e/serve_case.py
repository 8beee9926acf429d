"""What the tests of `cicada serve` share: a server on a free port that is always ended, and HTTP byte by byte."""
import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time

from cli_case import PROGRAM, CliCase
from serve_apis import APIS, COMPLETIONS

START_SECONDS = 60
END_SECONDS = 20
# A CHAIN that takes its time, about 0.2 ms a token and 3 s for a prompt of 12,000, and its options. On one thread:
# with more, tiny steps on a busy machine take as long as the threads wait for each other.
SLOW = ("--layers", "24", "--n-ctx", "65536")
SLOW_OPTIONS = ("-c", "65536", "--no-elide", "-t", "1")


class Reply:
    def __init__(self, status, headers, body=b""):
        self.status, self.headers, self.body = status, headers, body

    def header(self, name):
        """Its value; None where it is missing. A name that comes twice is a fault."""
        values = [value for key, value in self.headers if key == name]
        assert len(values) < 2, f"{name} comes {len(values)} times"
        return values[0] if values else None

    def json(self):
        return json.loads(self.body.decode("utf-8"))

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class Connection:
    """One connection: bytes out, replies in. `address` is (host, port) or the path of a Unix socket."""

    def __init__(self, address, timeout=100):
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        else:
            self.socket = socket.create_connection(address, timeout=timeout)
        self.held = b""
        self.method = "GET"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def fileno(self):
        return self.socket.fileno()

    def reset(self):
        """Goes away without a word: the peer gets a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def ask(self, method, target, body=None, headers=()):
        """Sends a request; a body that is no bytes is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1", "host: test"]
        if body is not None:
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers]
        self.method = method
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return self

    def _more(self):
        data = self.socket.recv(1 << 16)
        self.held += data
        return bool(data)

    def _until(self, mark):
        while mark not in self.held:
            if not self._more():
                raise ConnectionError(f"the server hung up after {self.held!r}")
        found, self.held = self.held.split(mark, 1)
        return found

    def _exactly(self, size):
        while len(self.held) < size:
            if not self._more():
                raise ConnectionError("the server hung up within a body")
        found, self.held = self.held[:size], self.held[size:]
        return found

    def head(self):
        """Status and headers of the next reply, whose body is still to be read."""
        first, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = [line.split(": ", 1) for line in lines]
        return Reply(int(first.split(" ")[1]), [(name.lower(), value) for name, value in headers])

    def pieces(self, head):
        """The bytes of a body as they come."""
        if self.method == "HEAD" or head.status in (204, 304):
            return
        if head.header("transfer-encoding") == "chunked":
            while size := int(self._until(b"\r\n"), 16):
                yield self._exactly(size)
                assert self._exactly(2) == b"\r\n"
            assert self._exactly(2) == b"\r\n"
        else:
            yield self._exactly(int(head.header("content-length") or 0))

    def reply(self):
        head = self.head()
        head.body = b"".join(self.pieces(head))
        return head

    def frames(self, head):
        """Server-sent events as they come, each without its empty line. The last must be whole."""
        rest = b""
        for piece in self.pieces(head):
            rest += piece
            *whole, rest = rest.split(b"\n\n")
            yield from whole
        assert rest == b"", f"half a frame at the end: {rest!r}"


class Server:
    """A running `cicada serve`. What it says is in `lines`."""

    def __init__(self, *arguments, listen=("--port", "0"), env=None):
        self.process = subprocess.Popen([PROGRAM, "serve", *arguments, *listen], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                        env={**os.environ, **(env or {})})
        self.lines = []
        self.address = None
        self.probe, self.headers = ("a", "bcdefghi"), ()
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._listens.wait(START_SECONDS)
        if self.address is None:
            self.kill()
            raise AssertionError("the server did not start: " + "\n".join(self.lines))

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode("utf-8", "replace").rstrip("\n"))
            if self.lines[-1].startswith("address "):
                where = self.lines[-1].split()[1]
                host, port = where.rsplit(":", 1) if where.startswith("http") else ("", 0)
                self.address = (host.split("//")[1].strip("[]"), int(port)) if host else where[len("unix:"):]
                self._listens.set()
        self._listens.set()

    def connect(self, timeout=100):
        return Connection(self.address, timeout)

    def ask(self, method, target, body=None, headers=()):
        with self.connect() as connection:
            return connection.ask(method, target, body, headers).reply()

    def post(self, target, body, headers=()):
        return self.ask("POST", target, body, headers)

    def engine_pid(self):
        """The engine's process, which is the only child; None while there is none."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    state, parent = stat.read().rsplit(") ", 1)[1].split()[:2]
            except OSError:
                continue
            if int(parent) == self.process.pid and state != "Z":
                return int(entry)
        return None

    def metric(self, name):
        """The sum of a metric's series."""
        found = [line for line in self.ask("GET", "/metrics").body.decode().splitlines()
                 if line.split("{")[0].split(" ")[0] == name]
        assert found, f"there is no metric {name}"
        return sum(float(line.rsplit(" ", 1)[1]) for line in found)

    def signal(self, number=signal.SIGTERM):
        self.process.send_signal(number)

    def wait(self, timeout=END_SECONDS):
        status = self.process.wait(timeout)
        self._reader.join(timeout)
        self.process.stderr.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()


def wait_until(condition, seconds=10):
    """Whether it came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class ServeCase(CliCase):
    """Servers that tests of a class share are ended with it, and must then end well."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = {}

    @classmethod
    def tearDownClass(cls):
        try:
            for server in cls.shared.values():
                server.signal()
            statuses = {key: server.wait() for key, server in cls.shared.items()}
            assert not any(statuses.values()), f"ended with {statuses}"
        finally:
            for server in cls.shared.values():
                server.kill()
            super().tearDownClass()

    def serve(self, *arguments, **options):
        """A server of this test's own."""
        server = Server(*arguments, **options)
        self.addCleanup(server.kill)
        return server

    def model(self, *chain, name="chain.gguf"):
        """A CHAIN whose chats are what its completions are, unless it brings a template."""
        if "--template" not in chain:
            chain += ("--template", "{% for m in messages %}{{ m.content }}{% endfor %}")
        return self.chain(name, *chain)

    def chain_server(self, *chain, options=(), probe=("a", "bcdefghi"), headers=()):
        """The one that the tests of this class share for a CHAIN with these arguments and options. `probe` is a
        prompt and the answer's beginning, by which check_alive() sees that all is well, with `headers`."""
        key = (chain, tuple(options))
        if key not in self.shared:
            model = self.model(*chain, name=f"chain{len(self.shared)}.gguf")
            self.shared[key] = Server("-m", model, "--served-model-name", "chain", *options)
            self.shared[key].model = model
            self.shared[key].probe, self.shared[key].headers = probe, headers
        return self.shared[key]

    def cached_model(self, name):
        """A known model's name, where its file is there already: nothing is fetched."""
        if self.run_cli("verify", name, "--offline")[0]:
            print(f"skipped: {self.id()}: the model {name} is not in the cache")
            self.skipTest(f"{name} is not in the cache")
        return name

    def check_alive(self, server):
        self.assertEqual(server.ask("GET", "/health").status, 200)
        prompt, text = server.probe
        said = self.answer(server, COMPLETIONS, prompt, headers=server.headers).text
        self.assertEqual(said[:len(text)], text)

    def answer(self, server, api, prompt, *, stream=False, headers=(), **fields):
        """An answer of any of the APIs; its stream is checked frame by frame."""
        fields = {"max_tokens": 8, "temperature": 0, **fields}
        with server.connect() as connection:
            connection.ask("POST", api.path, api.body(prompt, stream=stream, **fields), headers)
            head = connection.head()
            if stream and head.status == 200:
                self.assertEqual(head.header("content-type"), "text/event-stream; charset=utf-8")
                return api.streamed(connection.frames(head))
            head.body = b"".join(connection.pieces(head))
            self.assertEqual(head.status, 200, head)
            return api.whole(head.json())

    def answers(self, server, prompt, apis=APIS, **fields):
        """(api, whether streamed, answer) for each API and both ways."""
        for api in apis:
            for stream in (False, True):
                yield api, stream, self.answer(server, api, prompt, stream=stream, **fields)

    def check_refusal(self, reply, status, part=""):
        """The envelope of both vendors, and what every reply carries. Returns the sentence."""
        self.assertEqual(reply.status, status, reply)
        self.assertEqual(reply.header("content-type"), "application/json", reply)
        body = reply.json()
        self.assertEqual(set(body), {"type", "error", "request_id"})
        self.assertEqual(body["type"], "error")
        self.assertLessEqual({"type", "message", "code", "param"}, set(body["error"]))
        self.assertRegex(body["request_id"], "^req_[0-9A-Za-z]{24}$")
        for name in ("request-id", "x-request-id"):
            self.assertEqual(reply.header(name), body["request_id"])
        self.assertIn(part, body["error"]["message"])
        return body["error"]["message"]

    def refused_by_all(self, server, prompt, *, status=400, part="", apis=APIS, **fields):
        """Refused alike by each API, streamed or not; the server is well afterwards."""
        for api in apis:
            sentences = set()
            for stream in (False, True):
                with self.subTest(api=api.path, stream=stream):
                    body = api.body(prompt, stream=stream, **{"max_tokens": 8, **fields})
                    sentences.add(self.check_refusal(server.post(api.path, body), status, part))
            self.assertEqual(len(sentences), 1, sentences)
        self.check_alive(server)
