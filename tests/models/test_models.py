"""The real models against what is known of them. They are fetched models in $CICADA_HOME/models (default
~/.cache/cicada/models); the text is wiki.test.raw in $CICADA_WIKITEXT, or in ../shared/data beside the repository. What is
absent is skipped with a line.

    test_models.py quick     SmolLM2, two chunks: part of every test run
    test_models.py full      all three models, conversions, memory and start-up: `make test-models`
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ["CICADA_PROGRAM"]
HOME = os.environ.get("CICADA_HOME") or os.path.expanduser("~/.cache/cicada")
WIKITEXT = os.environ.get("CICADA_WIKITEXT") or os.path.join(
    os.path.dirname(ROOT), "shared", "data", "wikitext-2-raw", "wiki.test.raw")

# Perplexity of an independent forward pass with float32 activations (docs/testing.md), chunks of 512; allowed distance.
EXACT = {"smollm2": (20, 27.8422, 0.003), "gemma3-270m": (20, 18.6005, 0.002),
         "qwen2.5-coder-1.5b": (8, 15.2940, 0.002)}


def run(*arguments):
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{arguments}: status {done.returncode}: {done.stderr}")
    return done.stdout


class Models(unittest.TestCase):
    def model(self, name):
        path = os.path.join(HOME, "models", name + ".gguf")
        if not os.path.exists(path):
            self.skipTest(f"{name} is not in {HOME}/models")
        return path

    def perplexity(self, model, chunks, *extra):
        if not os.path.exists(WIKITEXT):
            self.skipTest(f"no wiki.test.raw: set CICADA_WIKITEXT")
        return json.loads(run("perplexity", "-m", model, "-f", WIKITEXT, "--chunks", str(chunks), "--json",
                              *extra))["perplexity"]


class Quick(Models):
    def test_two_chunks_are_near_exact(self):
        # Two chunks leave the 0.08 % of 20 chunks more room to swing: 0.5 %.
        value = self.perplexity(self.model("smollm2"), 2)
        self.assertLess(abs(value / 21.2799 - 1), 0.005, value)

    def test_the_answer_makes_sense(self):
        answer = json.loads(run("run", "-m", self.model("smollm2"), "--raw", "-p", "The capital of France is", "-n", "8",
                                "--json"))
        self.assertIn("Paris", answer["text"])


class Full(Models):
    def test_perplexity_is_near_exact(self):
        for name, (chunks, exact, allowed) in EXACT.items():
            with self.subTest(model=name):
                value = self.perplexity(self.model(name), chunks)
                print(f"{name}: {value:.4f}, exact {exact}, {100 * (value / exact - 1):+.3f} %")
                self.assertLess(abs(value / exact - 1), allowed)

    def test_roles_and_batches_agree(self):
        model = self.model("smollm2")
        value = self.perplexity(model, 1)
        self.assertEqual(value, self.perplexity(model, 1, "-b", "33"))
        self.assertLess(abs(self.perplexity(model, 1, "--role", "decode") / value - 1), 0.003)

    def test_wider_conversions_keep_the_perplexity(self):
        # Float weights take float32 activations, so these are nearer to exact than the quantised original: both are compared
        # with exact values, which for two chunks is 21.2799.
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("f32", "f16"):
                other = os.path.join(folder, kind + ".gguf")
                run("convert", self.model("smollm2"), other, "--type", kind)
                value = self.perplexity(other, 2)
                print(f"{kind}: {value:.4f}, exact 21.2799")
                self.assertLess(abs(value / 21.2799 - 1), 0.0005)

    def test_memory_is_near_the_files_size(self):
        for name in EXACT:
            with self.subTest(model=name):
                path = self.model(name)
                result = json.loads(run("bench", "-m", path, "-r", "1", "--json"))
                pages = (512 + 1 + 63) // 64 * 64
                used = result["rss_bytes"] - pages * result["kv_bytes_per_token"]
                ratio = used / os.path.getsize(path)
                print(f"{name}: {used / 1e6:.1f} MB without KV, {ratio:.3f} of the file")
                self.assertLessEqual(ratio, 1.25)

    def test_starting_takes_little(self):
        path = self.model("smollm2")
        times = []
        for _ in range(4):
            start = time.monotonic()
            run("run", "-m", path, "-p", "Hello", "-n", "1", "--json")
            times.append(time.monotonic() - start)
        print(f"run -n 1: {statistics.median(times[1:]):.3f} s")
        self.assertLess(statistics.median(times[1:]), 0.6)


if __name__ == "__main__":
    case = {"quick": Quick, "full": Full}[sys.argv.pop(1)]
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(case)
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == suite.countTestCases() else 0)
