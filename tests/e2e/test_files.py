"""Hostile, wrong and unreadable model files through every command that reads one: case BC-19."""
import json
import os
import struct
import time
import unittest

import made_models
from cli_case import CliCase

F32, U32, STRING, ARRAY = 0, 4, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key_u32(name, value):
    return text(name) + struct.pack("<II", U32, value)


def tensor(name, dims, offset, kind=F32):
    return text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + \
        struct.pack("<IQ", kind, offset)


def gguf(keys=(), tensors=(), data=b"\0" * 4096, version=3, num_tensors=None, num_keys=None):
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if num_tensors is None else num_tensors,
                                 len(keys) if num_keys is None else num_keys)
    body = head + b"".join(keys) + b"".join(tensors)
    return body + b"\0" * (-len(body) % 32) + data


def hostile():
    one = tensor("a", [8], 0)
    return {
        "a dimension of 0": gguf(tensors=[tensor("a", [0, 8], 0)]),
        "an empty key": gguf(keys=[key_u32("", 1)]),
        "2^60 tensors": gguf(num_tensors=1 << 60),
        "2^63 tensors": gguf(num_tensors=1 << 63),
        "2^60 keys": gguf(num_keys=1 << 60),
        "a string of 2^63 bytes": gguf(keys=[text("k") + struct.pack("<IQ", STRING, 1 << 63)]),
        "dimensions 2^32 x 2^32": gguf(tensors=[tensor("a", [1 << 32, 1 << 32], 0)]),
        "an offset beyond the file": gguf(tensors=[tensor("a", [8], 1 << 20)]),
        "an offset near 2^64": gguf(tensors=[tensor("a", [8], (1 << 64) - 32)]),
        "two tensors at one offset": gguf(tensors=[one, tensor("b", [8], 0)]),
        "alignment 0": gguf(keys=[key_u32("general.alignment", 0)], tensors=[one]),
        "alignment 3": gguf(keys=[key_u32("general.alignment", 3)], tensors=[one]),
        "an array of 2^62 bytes": gguf(keys=[text("k") + struct.pack("<IIQ", ARRAY, 0, 1 << 62)]),
        "a tensor cut short": gguf(tensors=[tensor("a", [1024], 0)], data=b"\0" * 4095),
        "version 0": gguf(version=0),
        "version 1": gguf(version=1),
        "version 99": gguf(version=99),
        "half a header": b"GGUF\3\0\0",
        "no magic": b"not a model at all, but long enough to look at",
        "nothing": b"",
    }


class Files(CliCase):
    def test_hostile_files_are_refused_by_every_command(self):
        for name, data in hostile().items():
            path = self.path(name.replace(" ", "_") + ".gguf", data)
            for command in (["inspect", path], ["run", "-m", path, "-p", "a"], ["tokenize", "-m", path],
                            ["convert", path, self.path("out.gguf"), "--type", "f16"]):
                with self.subTest(file=name, command=command[0]):
                    begin = time.monotonic()
                    self.refused(*command, part=os.path.basename(path))
                    self.assertLess(time.monotonic() - begin, 10)
            code, out, _ = self.run_cli("verify", path, "--json")
            self.assertIn(code, (2, 3), name)
            if code == 3:
                self.assertFalse(json.loads(out)["ok"])
                self.assertTrue(json.loads(out)["problems"])
        self.assertFalse(os.path.exists(self.path("out.gguf")))

    def test_truncations_of_a_good_file_are_refused(self):
        with open(self.chain("good.gguf"), "rb") as good:
            data = good.read()
        for size in (4, 24, 100, 2000, len(data) // 2, len(data) - 1):
            self.refused("inspect", self.path("cut.gguf", data[:size]), part="cut.gguf")

    def test_what_is_not_a_file_is_refused(self):
        for path in ("/dev/null", self.folder.name, self.path("missing.gguf")):
            for command in (["inspect", path], ["verify", path], ["run", "-m", path, "-p", "a"]):
                self.refused(*command)

    def test_a_good_file_is_inspected_verified_and_converted(self):
        model = self.chain("good.gguf")
        code, out, err = self.run_cli("inspect", model, "--json", "--deep", "--plan")
        self.assertEqual(code, 0, err)
        report = json.loads(out)
        for field in ("architecture", "parameters", "bytes", "tensors", "layers", "zeroed_layers", "missing", "extra",
                      "sha256", "plan"):
            self.assertIn(field, report)
        self.assertEqual(report["architecture"], "llama")
        self.assertEqual((report["zeroed_layers"], report["missing"]), (["blk.0"], []))
        self.assertTrue({"name", "shape", "dtype", "bytes", "zeros", "norm", "rank"} <= set(report["tensors"][0]))
        self.assertEqual(self.run_cli("verify", model, "--sha256", report["sha256"])[0], 0)
        self.assertEqual(self.run_cli("verify", model, "--sha256", "0" * 64)[0], 3)
        self.refused("verify", model, "--sha256", "0" * 68, part="64")
        for kind in ("f32", "f16", "bf16", "q8_0", "q4_0"):
            other = self.path(f"{kind}.gguf")
            code, _, err = self.run_cli("convert", model, other, "--type", kind)
            self.assertEqual(code, 0, err)
            self.assertEqual(self.answer(other, "a", "-n", "8")["text"], "bcdefghi", kind)
        self.refused("convert", model, model, "--type", "f16")
        self.refused("convert", model, self.path("x.gguf"), "--type", "q9_9")

    def test_paths_that_lead_nowhere_get_the_words_of_the_system(self):
        loop, file = self.path("loop.gguf"), self.path("file.gguf", b"GGUF")
        os.symlink("loop.gguf", loop)
        for path, words in ((loop, "Too many levels of symbolic links"), (file + "/x", "Not a directory")):
            for command in (["inspect", path], ["verify", path], ["run", "-m", path, "-p", "a"]):
                self.refused(*command, part=words)
        self.refused("perplexity", "-m", self.chain("good.gguf"), "-f", file + "/x", part="Not a directory")

    def test_control_bytes_of_file_names_do_not_reach_a_terminal(self):
        good = self.path("evil\x1b]0;owned\x07.gguf", made_models.layered())
        bad = self.path("bad\x1b[2J\n.gguf", b"GGUF")
        out_name = self.path("out\x1b[31m.gguf")
        for command, status in ((["inspect", good], 0), (["verify", good], 0), (["verify", bad], 3),
                                (["convert", good, out_name], 0), (["inspect", bad], 2)):
            code, out, err = self.run_cli(*command)
            self.assertEqual(code, status, err)
            for text in (out, err):
                self.assertTrue(all(c == "\n" or c.isprintable() for c in text), text)
            self.assertIn("\\x1b", out + err)

    def test_help_of_every_command(self):
        for command in ("run", "chat", "inspect", "verify", "tokenize", "perplexity", "bench", "convert", "pull"):
            code, out, _ = self.run_cli(command, "--help")
            self.assertEqual(code, 0)
            self.assertIn("--", out)


if __name__ == "__main__":
    unittest.main(verbosity=1)
