import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.dom.minidom

from tree import TOOLS

BENCH = TOOLS.parent / "bench"
sys.path.insert(0, str(BENCH))

import kv_chart  # noqa: E402
import kv_runs  # noqa: E402
import kv_stats  # noqa: E402

# Stands in for cicada: what the cache is kept as decides what comes out. Every call is a line of `log`.
FAKE = """#!{python}
import json, os, re, sys, time
words = sys.argv[1:]
if words == ["run", "--help"]:
    print("--kv-force" if {forces} else "--kv")
    sys.exit()
text = sys.stdin.read() if "-p" in words and words[words.index("-p") + 1] == "-" else ""
with open({log!r}, "a") as log:
    log.write(" ".join(words) + "\\n")
kv = words[words.index("--kv") + 1] if "--kv" in words else "f16"
if kv == "q4" and words[0] == "run" and "--kv-force" not in words:
    sys.exit("--kv q4: this model loses too much")
if kv == "slow":
    time.sleep(60)
if kv == "refused":
    sys.exit("--kv refused: this model loses 9 % of perplexity with it")
out = {{"isa": "avx2", "numerics_id": "0123", "kv_bytes_per_token": {{"f16": 1000, "q6": 406}}.get(kv, 500)}}
loss = {{"f16": 0.0, "q6": 0.002}}.get(kv, 0.5)
if words[0] == "perplexity":
    chunks = int(words[words.index("--chunks") + 1])
    nll = [2.0 + chunk % 3 + loss * (1 + chunk % 2) for chunk in range(chunks)]
    out.update(nll=nll, perplexity=7.5, tokens=100)
elif words[0] == "bench":
    out.update(decode={{"median": 100.0}})
elif "--raw" in words:
    key = re.search("number is ([0-9]+)", text).group(1)
    out.update(text=" " + (key if kv == "f16" else "12") + ".", prompt_tokens=len(text) // 4)
else:
    ducks = int(re.search("([0-9]+) ducks", text).group(1))
    wrong = kv != "f16" and ducks % 2 == 1
    out.update(text=f"There are 7.\\nAnswer: ${{ducks + wrong:,}}.00", completion_tokens=9, finish_reason="stop")
print(json.dumps(out))
"""


class Numbers(unittest.TestCase):
    def test_last_number_is_found_whatever_is_around_it(self):
        for text, number in [("Answer: 18", "18"), ("Answer: $1,234.50.", "1234.5"), ("18.00", "18"), ("\\boxed{20}.", "20"),
                             ("so 9-4", "4"), ("(2) - 3", "3"), ("(2) -3", "3"), ("Answer: -5", "-5"), ("60%", "60"), ("1,2", "2"),
                             ("007", "7"), ("12,000,000", "12000000"), ("none", None)]:
            self.assertEqual(kv_stats.last_number(text), number, text)

    def test_spellings_of_one_number_are_one(self):
        self.assertEqual({kv_stats.normal(number) for number in (" 1,000", "1000.0", "$1000", "01000")}, {"1000"})
        self.assertEqual({kv_stats.normal(number) for number in ("-0", "0.0", "0")}, {"0"})
        self.assertEqual(kv_stats.normal(".5"), kv_stats.normal("0.50"))


class Statistics(unittest.TestCase):
    def test_pairs_give_mean_and_standard_error_of_differences(self):
        found = kv_stats.paired([1.0, 2.0, 3.5], [1.0, 1.0, 2.0])  # 0, 1, 1.5
        self.assertAlmostEqual(found["mean"], 2.5 / 3)
        self.assertAlmostEqual(found["stderr"], 0.4409585518)
        self.assertIsNone(kv_stats.paired([1.0], [2.0])["stderr"])
        with self.assertRaises(ValueError):
            kv_stats.paired([1.0], [1.0, 2.0])

    def test_mcnemar_is_the_exact_binomial(self):
        self.assertEqual(kv_stats.mcnemar(0, 0), 1.0)
        self.assertAlmostEqual(kv_stats.mcnemar(5, 0), 2 / 32)
        self.assertAlmostEqual(kv_stats.mcnemar(1, 6), 2 * 8 / 128)
        self.assertEqual(kv_stats.mcnemar(3, 3), 1.0)

    def test_outcomes_count_only_items_that_both_have(self):
        found = kv_stats.outcomes({0: True, 1: False, 2: True, 9: True}, {0: True, 1: True, 2: False, 3: True})
        self.assertEqual([found[key] for key in ("items", "right", "both_right", "losses", "gains")], [3, 2, 1, 1, 1])


class Kept(unittest.TestCase):
    def test_line_that_was_cut_short_is_not_there_and_spoils_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "part.jsonl")
            kv_runs.Store(str(path)).keep({"a": 1}, {"x": 2})
            path.write_text(path.read_text() + '{"key": {"a": 2}, "resu')
            store = kv_runs.Store(str(path))
            self.assertEqual((store.find({"a": 1}), store.find({"a": 2})), ({"x": 2}, None))
            store.keep({"a": 2}, {"x": 3})
            again = kv_runs.Store(str(path))
            self.assertEqual((again.find({"a": 1}), again.find({"a": 2})), ({"x": 2}, {"x": 3}))


class Charts(unittest.TestCase):
    def boxes(self, picture):
        found = re.findall(r'<text x="(-?\d+)" y="(-?\d+)" font-size="11" text-anchor="start" fill="#222"[^>]*>([^<]*)<', picture)
        return [(int(x), int(y) - 9, int(x) + 6 * len(words), int(y) + 2) for x, y, words in found]

    def assert_apart(self, boxes):
        for index, (left, top, right, bottom) in enumerate(boxes):
            self.assertTrue(left >= 0 and right <= kv_chart.WIDTH, boxes[index])
            for other in boxes[index + 1:]:
                self.assertFalse(left < other[2] and other[0] < right and top < other[3] and other[1] < bottom, (boxes[index], other))

    def test_labels_of_settings_that_lie_close_do_not_overlap(self):
        rows = [{"model": "tiny", "setting": name, "ctx": 512, "share": share, "loss": {"percent": percent, "stderr": 0.02}}
                for name, share, percent in [("f16", 1.0, 0.0), ("q8", 0.53, -0.01), ("q8/q6", 0.47, 0.12), ("q6/q8", 0.47, 0.10),
                                             ("q6", 0.41, 0.11), ("q4", 0.28, 2.0)]]
        picture = kv_chart.quality(rows, "here")
        xml.dom.minidom.parseString(picture)
        boxes = self.boxes(picture)
        self.assertEqual(len(boxes), 5)
        self.assert_apart(boxes)

    def test_names_of_lines_that_end_together_do_not_overlap(self):
        lines = [{"name": f"engine {index}", "ours": index < 2,
                  "speeds": {str(depth): {"median": 100 + index, "min": 90, "max": 110} for depth in (0, 7000)}} for index in range(6)]
        picture = kv_chart.speed(lines, "here")
        xml.dom.minidom.parseString(picture)
        boxes = self.boxes(picture)
        self.assertEqual(len(boxes), 6)
        self.assert_apart(boxes)

    def test_heights_are_moved_no_further_than_need_be(self):
        self.assertEqual(kv_chart.apart([10.0, 50.0, 12.0], 10.0), [6.0, 50.0, 16.0])
        self.assertEqual(kv_chart.apart([], 10.0), [])

    def test_nothing_measured_is_no_picture(self):
        self.assertIsNone(kv_chart.quality([], "here"))
        self.assertIsNone(kv_chart.speed([], "here"))


class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.log = self.root / "log"
        self.fake = self.root / "cicada"
        self.fake.write_text(FAKE.format(python=sys.executable, log=str(self.log), forces=True))
        self.fake.chmod(0o755)
        for model in ("smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"):
            self.put(f"home/models/{model}.gguf", "")
        self.put("data/wikitext-2-raw/wiki.test.raw", "text")
        self.put("data/gutenberg-1342/pride_and_prejudice.txt", "A paragraph of the novel, of some words.\n\n" * 2000)
        self.put("data/gsm8k/test.jsonl", "".join(json.dumps({"question": f"{ducks} ducks?", "answer": f"so\n#### {ducks:,}"}) + "\n"
                                                  for ducks in range(1000, 1010)))

    def put(self, path, content):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def start(self, *arguments):
        return subprocess.Popen(
            [sys.executable, BENCH / "kv_quality.py", "--cicada", self.fake, "--data", self.root / "data", "--out", self.root / "out", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={"PATH": "/usr/bin:/bin", "CICADA_HOME": str(self.root / "home"), "PYTHONDONTWRITEBYTECODE": "1"})

    def measure(self, *arguments):
        process = self.start(*arguments)
        output, errors = process.communicate(timeout=250)
        return process.returncode, output, errors

    def result(self):
        return json.loads((self.root / "out/kv-quality.json").read_text())

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def test_perplexity_is_paired_chunk_by_chunk(self):
        status, output, errors = self.measure("perplexity", "-m", "smollm2", "--kv", "q6")
        self.assertEqual((status, errors), (0, ""))
        row = next(row for row in self.result()["perplexity"] if row["setting"] == "q6" and row["ctx"] == 512)
        self.assertAlmostEqual(row["nll"]["mean"], 0.003)
        self.assertAlmostEqual(row["loss"]["percent"], 0.30045, 5)
        self.assertEqual(row["share"], 0.406)
        self.assertIn("| smollm2 | 20 × 512 | q6 | 7.5000 | +0.00300 ± 0.00023 | +0.300 ± 0.023 | 406 | 0.406 |", output)

    def test_what_is_kept_is_not_measured_again(self):
        self.measure("perplexity", "gsm8k", "--kv", "q6", "--problems", "3")
        calls = self.calls()
        self.assertEqual(len(calls), 2 * (3 + 1 + 3))
        self.assertEqual(self.measure("perplexity", "gsm8k", "--kv", "q6", "--problems", "4")[0], 0)
        self.assertEqual(len(self.calls()), len(calls) + 2)

    def test_another_program_measures_anew_unless_the_label_is_the_same(self):
        for label, more in (([], 2), (["--label", "one"], 2), (["--label", "one"], 0)):
            before = len(self.calls())
            self.fake.write_text(self.fake.read_text() + "\n")
            self.measure("gsm8k", "--kv", "q6", "--problems", "1", *label)
            self.assertEqual(len(self.calls()), before + more, label)

    def test_answers_are_compared_as_numbers_and_in_pairs(self):
        self.assertEqual(self.measure("gsm8k", "--kv", "q6")[0], 0)
        base, row = self.result()["gsm8k"]
        self.assertEqual(base["right"], 10)
        self.assertEqual([row[key] for key in ("right", "both_right", "losses", "gains", "p")], [5, 5, 5, 0, 0.0625])

    def test_needles_are_counted_by_depth_and_settings_take_any_argument(self):
        status, output, _ = self.measure("needle", "--kv", "", "--setting", "window=--kv-policy 'window:8'")
        self.assertEqual(status, 0)
        self.assertIn("--kv-policy window:8 --kv-force --json", self.calls()[-1])
        self.assertEqual([(row["setting"], row["found"]) for row in self.result()["needle"]],
                         [("f16", 20), ("window", 20), ("f16", 20), ("window", 20)])
        self.assertNotIn("Void", output)

    def test_needle_test_whose_base_finds_nothing_is_void(self):
        self.fake.write_text(self.fake.read_text().replace('key if kv == "f16"', 'key if kv == "none"'))
        self.assertIn("Void at 1000 tokens", self.measure("needle", "--kv", "q6")[1])

    def test_setting_that_is_refused_is_said_and_the_others_go_on(self):
        status, output, errors = self.measure("perplexity", "-m", "smollm2", "--kv", "refused q6")
        self.assertEqual(status, 1)
        self.assertIn("loses 9 % of perplexity", errors)
        self.assertNotIn("Traceback", errors)
        self.assertIn("| q6 |", output)
        self.assertIn("Not measured: perplexity, refused", output)

    def test_type_that_run_refuses_is_forced_where_that_can_be(self):
        self.assertEqual(self.measure("gsm8k", "--kv", "q4", "--problems", "1")[0], 0)
        self.fake.write_text(FAKE.format(python=sys.executable, log=str(self.log), forces=False))
        status, _, errors = self.measure("gsm8k", "--kv", "q4", "--problems", "1")
        self.assertEqual((status, "loses too much" in errors), (1, True))

    def test_ctrl_c_keeps_what_was_measured_and_says_so(self):
        process = self.start("gsm8k", "--kv", "slow", "--problems", "2")
        for _ in range(2000):
            if any("slow" in call for call in self.calls()):
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(errors, "kv_quality.py: stopped; what was measured is kept, the same command goes on\n")
        self.assertIn("| f16 | 1 of 1 |", output)

    def test_charts_are_drawn_of_what_is_kept(self):
        self.put("peers.json", json.dumps([{"name": "other", "speeds": {"0": [50, 60, 70], "7000": [9]}}]))
        self.assertEqual(self.measure("perplexity", "depth", "charts", "--kv", "q6", "--setting", "w=-w", "-r", "1", "--peers", str(self.root / "peers.json")),
                         (0, (self.root / "out/kv-quality.md").read_text(), ""))
        for name, words in (("kv-quality.svg", "q6 0.30 %"), ("kv-speed.svg", "9.0 other")):
            picture = (self.root / "out" / name).read_text()
            xml.dom.minidom.parseString(picture)
            self.assertIn(words, picture)

    def test_wrong_use_is_one_sentence(self):
        for arguments, words in ((["perplex"], "'perplex' is no part"), (["--kv", "q6 q6"], "two settings have one name"),
                                 (["--setting", "window"], "NAME=ARGUMENTS"), (["--depths", "a", "depth"], "--depths is numbers"),
                                 (["gsm8k", "--data", "/nowhere"], "gsm8k/test.jsonl: not there"),
                                 (["charts", "--peers", "/nowhere"], "/nowhere: not a list")):
            status, _, errors = self.measure(*arguments)
            self.assertEqual((status, errors.count("\n")), (1, 1), errors)
            self.assertIn(words, errors)


if __name__ == "__main__":
    unittest.main()
