"""A running `cicada serve`, and the rigged CHAIN models it serves; Python's standard library only."""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("CICADA_PROGRAM", os.path.join(ROOT, "build", "cicada"))
ADDRESS = "address  http://"
# Writes the texts and nothing around them; reads no tools, so calls are looked for in Hermes' form.
PLAIN_TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
THINKING_TEMPLATE = PLAIN_TEMPLATE + "{# <think> </think> #}"
# Answers, in tokens.
CALL = ("Let me see. ", "<tool_call>", '{"name": "get_wea', 'ther", "argu', 'ments": {"city": "Os', 'lo", "da', 'ys": 2',
        "}}", "</tool_call>", "</s>")
THOUGHT = ("<think>", "deep ", "water", "</think>", "fine", "</s>")


def make_chain(path, *pieces, template=PLAIN_TEMPLATE):
    """Writes a model that answers with these pieces; without any, with the alphabet."""
    script = os.path.join(ROOT, "testdata", "models", "make_chain.py")
    order = ["--order", *pieces] if pieces else []
    subprocess.run([sys.executable, script, path, *order, "--template", template], check=True)
    return path


class LiveServer:
    """Started and ready when made, ended when the `with` block is left. `pieces`: as of make_chain()."""

    def __init__(self, *arguments, model=None, pieces=(), template=PLAIN_TEMPLATE):
        self.folder = tempfile.TemporaryDirectory()
        if model is None:
            model = make_chain(os.path.join(self.folder.name, "chain.gguf"), *pieces, template=template)
            arguments = ("--served-model-name", "chain", *arguments)
        self.process = subprocess.Popen([PROGRAM, "serve", "-m", model, "--port", "0", *arguments],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.address = ""
        for line in self.process.stderr:
            self.lines.append(line)
            if line.startswith(ADDRESS):
                self.address = line[len(ADDRESS):].strip()
                break
        if not self.address:
            raise RuntimeError(f"cicada serve ended with {self.process.wait()}: {''.join(self.lines)}")
        self.url = "http://" + self.address
        # Read to the end, or a full pipe would stop the server.
        threading.Thread(target=self._keep_reading, daemon=True).start()

    def _keep_reading(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def request(self, method, path, body=None, headers=None):
        """(status, headers with small letters, body); `body`: bytes, or what is sent as JSON."""
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection(self.address, timeout=120)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            reply = connection.getresponse()
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
        finally:
            connection.close()
