"""Starting a server under test: ours, and any with llama-server's options."""
import os
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request


class ServerError(Exception):
    """A sentence for the user."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server; ends with the `with` block. `peak_bytes` is of all its processes."""

    def __init__(self, name, command, health="/health"):
        self.name, self.command, self.health = name, command, health
        self.port = free_port()
        self.peak_bytes = 0

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*self.command, "--port", str(self.port)], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log)
        for _ in range(600):
            if self.process.poll() is not None:
                self.log.seek(0)
                raise ServerError(f"{self.name} ended: {self.log.read()[-300:].decode(errors='replace')}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{self.health}", timeout=2) as reply:
                    if reply.status == 200:
                        return self
            except OSError:
                pass
            time.sleep(0.1)
        raise ServerError(f"{self.name} did not become healthy within a minute")

    def pids(self):
        """The process and those that it started."""
        found = [self.process.pid]
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/status") as status:
                        parent = int(re.search(r"^PPid:\s+(\d+)", status.read(), re.M)[1])
                except (OSError, TypeError):
                    continue
                if parent == self.process.pid:
                    found.append(int(entry))
        return found

    def resident_bytes(self, peak=False):
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/status") as status:
                line = re.search(r"^VmHWM:\s+(\d+)" if peak else r"^VmRSS:\s+(\d+)", status.read(), re.M)
            total += int(line[1]) * 1024
        return total

    def __exit__(self, *exception):
        if self.process.poll() is None:
            self.peak_bytes = self.resident_bytes(peak=True)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def ours(program, model, threads, more=()):
    return Server("Cicada", [program, "serve", "-m", model, "-t", str(threads), *more])


def llama_server(program, model, threads, settings):
    return Server("llama-server", [program, "-m", model, "-t", str(threads), "--host", "127.0.0.1",
                                   *shlex.split(settings)])
