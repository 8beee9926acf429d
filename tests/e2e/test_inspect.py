"""`cicada inspect`, `verify`, `tokenize` and `convert` beyond the good file of test_files.py."""

import hashlib
import json
import os
import pty
import signal
import subprocess
import time
import unittest

import made_models
from cli_case import PROGRAM, CliCase

COMMANDS = {
    "run": ["-m", "x", "-p", "a"],
    "chat": ["-m", "x"],
    "inspect": ["x"],
    "verify": ["x"],
    "tokenize": ["-m", "x"],
    "perplexity": ["-m", "x", "-f", "x"],
    "bench": ["-m", "x"],
    "convert": ["x", "y.gguf"],
    "pull": ["smollm2"],
}


class Inspect(CliCase):
    def inspect(self, path, *options):
        code, out, err = self.run_cli("inspect", path, "--json", *options)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_zeroed_layers_are_those_the_plan_leaves_out(self):
        position = [f"blk.{i}.rel_pos_proj.weight" for i in range(3)]
        for name, expected, model in [
            ("dense", [], {}),
            ("layer", ["blk.1"], {"zero": ["blk.1.attn_output.weight", "blk.1.ffn_down.weight"]}),
            ("parts", ["blk.0.attn", "blk.2.ffn"],
             {"zero": ["blk.0.attn_output.weight", "blk.2.ffn_down.weight"]}),
            ("factor", [], {"zero": ["blk.0.attn_q.weight", "blk.1.ffn_up.weight"]}),
            ("table", ["blk.1.rel_pos_proj"], {"zero": position[1:2], "rel_pos_dim": 8}),
            ("tables", ["rel_pos_proj"], {"zero": position, "rel_pos_dim": 8}),
        ]:
            if "rel_pos_dim" in model:
                model["architecture"] = "cicada-v1"
            path = self.path(name + ".gguf", made_models.layered(**model))
            report = self.inspect(path, "--plan")
            self.assertEqual(report["zeroed_layers"], expected, name)
            self.assertEqual(report["plan_totals"]["elided"], expected, name)
            kept = self.inspect(path, "--plan", "--no-elide")
            self.assertEqual(kept["zeroed_layers"], expected, name)
            self.assertEqual(kept["plan_totals"]["elided"], [], name)
            longer = kept["plan_totals"]["steps"] > report["plan_totals"]["steps"]
            self.assertEqual(longer, name in ("layer", "parts"), name)

    def test_the_plan_adds_up(self):
        report = self.inspect(self.path("dense.gguf", made_models.layered()), "--plan", "-t", "1")
        plan, totals = report["plan"], report["plan_totals"]
        self.assertEqual(totals["steps"], len(plan))
        self.assertEqual(totals["barriers"], sum(step["barrier"] for step in plan))
        self.assertEqual(totals["bytes_per_token"], sum(step["weight_bytes"] for step in plan))
        self.assertEqual({step["kernel_level"] for step in plan}, {totals["kernel_level"]})
        read = [tensor["name"] for step in plan for tensor in step["tensors"]]
        matrices = [t["name"] for t in report["tensors"] if len(t["shape"]) == 2]
        self.assertEqual(set(read), set(matrices))
        # F32 rows are whole groups of 16 here (but for 8 tokens), so memory holds what the file holds.
        ffn = sum(step["weight_bytes"] for step in plan if ".ffn" in step["name"])
        self.assertEqual(ffn, 4 * 3 * (3 * 32 * 64 + 32))

    def test_missing_and_extra_tensors_are_reported_and_fatal_only_to_the_plan(self):
        path = self.path("missing.gguf", made_models.layered(without=["blk.1.ffn_up.weight"]))
        report = self.inspect(path)
        self.assertEqual(report["missing"], ["blk.1.ffn_up.weight"])
        self.assertFalse(report["runnable"])
        part = report["parts"]["feed-forward"]
        self.assertEqual(part["expected"] - part["found"], 32 * 64)
        self.assertIn("Missing tensors\nblk.1.ffn_up.weight\n", self.run_cli("inspect", path)[1])
        self.refused("inspect", path, "--plan", part="blk.1.ffn_up.weight")
        metadata = [("general.architecture", made_models.STRING, "llama")]
        tensors = [("spare", (2, 3), [1.0, 2.0, 3.0, 2.0, 4.0, 6.0])]
        path = self.path("spare.gguf", made_models.gguf_bytes(metadata, tensors))
        report = self.inspect(path, "--deep")
        self.assertIn("refusal", report)
        spare = report["tensors"][0]
        self.assertEqual((spare["shape"], spare["rank"], spare["zeros"]), ([2, 3], 1, 0))
        self.assertAlmostEqual(spare["norm"], 70**0.5)

    def test_counts_and_hash_are_those_of_the_file(self):
        data = made_models.layered()
        report = self.inspect(self.path("counts.gguf", data))
        self.assertEqual(report["bytes"], len(data))
        self.assertEqual(report["sha256"], hashlib.sha256(data).hexdigest())
        elements = [t["bytes"] // 4 for t in report["tensors"]]
        self.assertEqual(report["parameters"], sum(elements))
        found = sum(part["found"] for part in report["parts"].values())
        self.assertEqual(found, report["parameters"])
        self.assertEqual(sum(layer["parameters"] for layer in report["layers"]),
                         sum(elements) - 8 * 32 - 32)

    def test_names_from_the_file_cannot_reach_the_terminal_raw(self):
        evil = "x\x1b]0;owned\x07\u202e"
        metadata = [("general.architecture", made_models.STRING, evil)]
        path = self.path("evil.gguf", made_models.gguf_bytes(metadata, [(evil, (1, 1), [1.0])]))
        code, out, err = self.run_cli("inspect", path)
        self.assertEqual(code, 0, err)
        for text in (out, err):
            self.assertTrue(all(c == "\n" or c.isprintable() for c in text), text)
        self.assertIn("cannot be run", out)
        self.assertEqual(self.inspect(path)["tensors"][0]["name"], evil)

    def test_progress_appears_on_a_terminal_only(self):
        path = self.path("dense.gguf", made_models.layered())
        self.assertEqual(self.run_cli("inspect", path, "--deep")[2], "")
        ours, theirs = pty.openpty()
        done = subprocess.run([PROGRAM, "inspect", path, "--deep"], stdout=subprocess.DEVNULL,
                              stderr=theirs, timeout=30, check=False)
        os.close(theirs)
        shown = os.read(ours, 1 << 16)
        os.close(ours)
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"looking into", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), "the line is wiped at the end")


class Verify(CliCase):
    def test_sums_name_the_file(self):
        data = made_models.layered()
        path = self.path("m.gguf", data)
        good = hashlib.sha256(data).hexdigest()
        sums = self.path("sha256sum.txt", f"{'0' * 64}  other\n{good} *models/m.gguf\n".encode())
        code, out, err = self.run_cli("verify", path, "--sums", sums, "--json")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["problems"], [])
        wrong = self.path("wrong.txt", f"{'0' * 64}  m.gguf\n".encode())
        code, out, _ = self.run_cli("verify", path, "--sums", wrong, "--json")
        self.assertEqual((code, json.loads(out)["ok"]), (3, False))
        self.assertIn(good, json.loads(out)["problems"][0])
        self.refused("verify", path, "--sums", self.path("else.txt", f"{good}  b\n".encode()))
        self.refused("verify", path, "--sums", self.path("bad.txt", b"what\n"), part="line 1")
        self.refused("verify", path, "--sums", sums, "--sha256", good)
        self.refused("verify", path, "--sums", self.path("none.txt"), part="none.txt")

    def test_what_is_given_but_empty_is_refused(self):
        path = self.path("m.gguf", made_models.layered())
        self.refused("verify", path, "--sha256", "", part="64 hex digits")
        self.refused("verify", path, "--sums", "", part="--sums")
        self.assertEqual(self.run_cli("verify", path)[0], 0)

    def test_a_damaged_copy_of_a_known_model_is_a_verdict(self):
        home = {"CICADA_HOME": self.path("home")}
        self.refused("verify", "smollm2", "--offline", env=home, part="offline")
        os.makedirs(self.path("home/models"))
        copy = self.path("home/models/smollm2.gguf", made_models.layered())
        code, out, err = self.run_cli("verify", "smollm2", "--offline", "--json", env=home)
        self.assertEqual(code, 3, err)
        verdict = json.loads(out)
        self.assertEqual((verdict["ok"], verdict["path"], len(verdict["problems"])), (False, copy, 1))
        self.assertIn("SHA-256", verdict["problems"][0])
        code, out, err = self.run_cli("verify", "smollm2", env=home)
        self.assertEqual((code, err), (3, ""))
        self.assertTrue(out.endswith("smollm2.gguf: 1 problem\n"), out)
        with open(copy, "wb") as damaged:
            damaged.write(b"GGUF\3")
        code, out, err = self.run_cli("verify", "smollm2", "--json", env=home)
        self.assertEqual((code, len(json.loads(out)["problems"])), (3, 2), err)
        self.refused("inspect", "smollm2", env=home, part="remove the file and pull again")

    def test_numbers_that_are_none_are_a_problem(self):
        metadata = [("general.architecture", made_models.STRING, "llama")]
        tensors = [("a", (1, 3), [1.0, float("nan"), float("inf")])]
        path = self.path("nan.gguf", made_models.gguf_bytes(metadata, tensors))
        code, out, _ = self.run_cli("verify", path)
        self.assertEqual(code, 3)
        self.assertIn("1 NaN and 1 infinite", out)


class Tokenize(CliCase):
    def test_ids_come_a_line_each_and_go_back_exactly(self):
        model = self.path("bytes.gguf", made_models.byte_bpe("gpt-2"))  # no weights at all
        data = bytes(range(256)) * 3 + "aé漢🦙".encode()
        code, out, err = self.run_cli("tokenize", "-m", model, stdin=data)
        self.assertEqual(code, 0, err)
        back = subprocess.run([PROGRAM, "tokenize", "-m", model, "--decode"], input=out.encode(),
                              capture_output=True, timeout=30, check=False)
        self.assertEqual(back.stdout, data)
        as_json = json.loads(self.run_cli("tokenize", "-m", model, "--json", stdin=data)[1])
        self.assertEqual(as_json["tokens"], [int(line) for line in out.split()])
        code, out, _ = self.run_cli("tokenize", "-m", model, "--json")
        self.assertEqual(json.loads(out), {"tokens": []})

    def test_control_tokens_are_text_unless_asked(self):
        model = self.chain("control.gguf", "--control", "<|x|>")
        plain = json.loads(self.run_cli("tokenize", "-m", model, "--json", stdin=b"a<|x|>")[1])
        special = json.loads(
            self.run_cli("tokenize", "-m", model, "--json", "--special", stdin=b"a<|x|>")[1])
        self.assertEqual(len(plain["tokens"]), 6)
        self.assertEqual(len(special["tokens"]), 2)
        ids = json.dumps(special).encode()
        self.assertEqual(self.run_cli("tokenize", "-m", model, "--decode", stdin=ids)[1], "a")
        self.assertEqual(
            self.run_cli("tokenize", "-m", model, "--decode", "--special", stdin=ids)[1], "a<|x|>")

    def test_a_start_token_only_where_asked_and_there(self):
        model = self.chain("alphabet.gguf")
        self.assertEqual(self.run_cli("tokenize", "-m", model, stdin=b"a")[1], "260\n")
        self.assertEqual(self.run_cli("tokenize", "-m", model, "--bos", stdin=b"a")[1], "1\n260\n")
        self.refused("tokenize", "-m", self.path("b.gguf", made_models.byte_bpe("gpt-2")), "--bos",
                     stdin=b"a", part="start token")

    def test_ids_that_are_none_are_refused(self):
        model = self.chain("alphabet.gguf")
        for text in (b"5 x", b"-1", b"288", b"99999999999999999999", b"[1.5]", b"[1", b"{}", b"\xff"):
            self.refused("tokenize", "-m", model, "--decode", stdin=text)
        self.refused("tokenize", "-m", model, "--decode", "--bos")


class Convert(CliCase):
    def test_places_that_cannot_be_written_are_refused(self):
        model = self.chain("alphabet.gguf")
        self.refused("convert", model, self.path("none/x.gguf"), part="no such folder")
        os.mkdir(self.path("folder.gguf"))
        self.refused("convert", model, self.path("folder.gguf"), part="is a directory")
        self.refused("convert", model, self.path("x.bin"), part=".gguf or .safetensors")
        self.refused("convert", model, self.path("x.safetensors"), "--type", "q8_0")
        self.refused("convert", model, self.path("x.gguf"), "--type", "", part="--type ''")
        os.mkfifo(self.path("pipe.gguf"))
        os.symlink("/dev/null", self.path("device.gguf"))
        os.symlink("loop.gguf", self.path("loop.gguf"))
        for name in ("pipe.gguf", "device.gguf"):
            self.refused("convert", model, self.path(name), part="not a regular file")
        self.refused("convert", model, self.path("loop.gguf"), part="symbolic links")

    def test_an_output_that_is_a_link_stays_one(self):
        model = self.chain("alphabet.gguf")
        real, link = self.path("real.gguf", b"old"), self.path("link.gguf")
        os.symlink("real.gguf", link)
        self.assertEqual(self.run_cli("convert", model, link)[0], 0)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(self.run_cli("verify", real)[0], 0)

    def test_the_config_of_another_file_is_not_overwritten(self):
        model = self.chain("alphabet.gguf")
        os.makedirs(self.path("two"))
        first, second = self.path("two/a.safetensors"), self.path("two/b.safetensors")
        self.assertEqual(self.run_cli("convert", model, first)[0], 0)
        self.refused("convert", model, second, part="belongs to a.safetensors")
        self.assertEqual(self.run_cli("convert", model, first, "--type", "f16")[0], 0)
        self.assertEqual(self.answer(first, "a", "-n", "2")["text"], "bc")

    def test_numbers_that_a_type_cannot_hold_are_counted(self):
        metadata = [("general.architecture", made_models.STRING, "llama")]
        path = self.path("huge.gguf", made_models.gguf_bytes(metadata, [("a", (2, 32), [3e38] * 32 + [1.0] * 32)]))
        for kind, count in (("f16", 32), ("q8_0", 32), ("q4_0", 32), ("bf16", 0)):
            code, out, err = self.run_cli("convert", path, self.path("less.gguf"), "--type", kind, "--json")
            self.assertEqual((code, json.loads(out)["tensors"][0]["overflowed"]), (0, count), kind)
            self.assertEqual("32 finite numbers" in err, count > 0, err)

    def test_safetensors_and_back_gives_the_same_answer(self):
        model = self.chain("alphabet.gguf")
        os.makedirs(self.path("hf"), exist_ok=True)
        middle, back = self.path("hf/model.safetensors"), self.path("back.gguf")
        code, out, err = self.run_cli("convert", model, middle, "--json")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        self.assertEqual((report["from"], report["to"]), ("GGUF", "safetensors"))
        self.assertTrue(all(os.path.exists(file) for file in report["files"]))
        self.assertEqual(self.run_cli("convert", middle, back)[0], 0)
        self.assertEqual(self.answer(back, "a", "-n", "8")["text"], "bcdefghi")

    def test_an_interrupt_leaves_nothing_behind(self):
        # Large enough that the signal comes in the middle; all zeros, so the input costs no disk.
        size = 1 << 30
        metadata = [("general.architecture", made_models.STRING, "llama")]
        head = made_models.gguf_bytes(metadata, [("a", (1, 1), [0.0])])[:-32]
        head = head.replace(made_models.struct_dims(1, 1), made_models.struct_dims(1024, size // 4096))
        path = self.path("large.gguf", head)
        os.truncate(path, len(head) + size)
        folder = self.path("out")
        os.mkdir(folder)
        process = subprocess.Popen([PROGRAM, "convert", path, os.path.join(folder, "o.gguf"), "--type", "q4_0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # The output has no name yet, so it is looked for among the open files.
        opened = f"/proc/{process.pid}/fd"
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if any(os.readlink(os.path.join(opened, fd)).startswith(folder) for fd in os.listdir(opened)):
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1, err)
        self.assertEqual(len(err.decode().strip().splitlines()), 1, err)
        self.assertEqual(os.listdir(folder), [])


class EveryCommand(CliCase):
    def test_unknown_options_are_one_sentence(self):
        for command, needed in COMMANDS.items():
            self.refused(command, *needed, "--no-such-option", part="--no-such-option")

    def test_output_that_nobody_takes_is_a_failure_and_no_signal(self):
        model = self.chain("alphabet.gguf")
        for command in (["inspect", model], ["verify", model], ["tokenize", "-m", model]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([PROGRAM, *command], stdin=subprocess.DEVNULL, stdout=full,
                                      stderr=subprocess.PIPE, timeout=30, check=False)
            if command[0] != "tokenize":  # no text, no ids, no output
                self.assertEqual(done.returncode, 1, command)
                self.assertIn(b"No space left", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
