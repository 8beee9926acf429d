"""What the end-to-end tests share: running the program within limits, and the rigged CHAIN model."""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ["CICADA_PROGRAM"]
MAX_MEMORY = 512 << 20


class CliCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def path(self, name, data=None):
        path = os.path.join(self.folder.name, name)
        if data is not None:
            with open(path, "wb") as out:
                out.write(data)
        return path

    def chain(self, name, *arguments):
        path = self.path(name)
        script = os.path.join(ROOT, "testdata", "models", "make_chain.py")
        subprocess.run([sys.executable, script, path, *arguments], check=True, stdout=subprocess.DEVNULL)
        return path

    def run_cli(self, *arguments, stdin=b"", env=None, timeout=30, memory=MAX_MEMORY):
        """(status, standard output, standard error); never a signal, never more than `memory` bytes."""
        done = subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=timeout,
                              env={**os.environ, **(env or {})})
        self.assertGreaterEqual(done.returncode, 0, f"ended by a signal: {arguments}")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        self.assertLess(peak, memory, f"memory: {arguments}")
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def refused(self, *arguments, status=2, part="", stdin=b"", env=None):
        """The one sentence of a refusal, which contains `part`."""
        code, out, err = self.run_cli(*arguments, stdin=stdin, env=env)
        self.assertEqual(code, status, f"{arguments}: {out} {err}")
        lines = err.strip().splitlines()
        self.assertEqual(len(lines), 1, f"{arguments}: {err}")
        self.assertIn(part, lines[0])
        return lines[0]

    def answer(self, model, prompt, *arguments):
        code, out, err = self.run_cli("run", "-m", model, "--raw", "-p", prompt, "--json", *arguments)
        self.assertEqual(code, 0, err)
        return json.loads(out)
