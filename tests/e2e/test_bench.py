"""bench/compare.py with a peer made of a few lines, and `cicada bench --machine`."""
import json
import os
import subprocess
import sys
import unittest

from cli_case import PROGRAM, ROOT, CliCase

PEER = """#!/usr/bin/env python3
import json, sys
a = sys.argv
if "--help" in a:
    print("--repack <0|1>")
elif a[0].endswith("batched-bench"):
    print("|  PP |  TG |  B | N_KV | T_PP | S_PP | T_TG | S_TG |  T |  S |")
    print("|   1 |   4 |  2 |   10 |  0.1 | 20.0 |  0.2 |  7.5 | .3 | 33 |")
else:
    p, n = (int(a[a.index(option) + 1]) for option in ("-p", "-n"))
    speed = 4.0 if a[-4:] == ["-fa", "1", "--repack", "0"] else 2.0
    print(json.dumps([{"n_prompt": p, "n_gen": n, "avg_ts": speed, "build_commit": "f00"}]))
"""


class Bench(CliCase):
    def peer(self):
        for name in ("llama-bench", "llama-batched-bench"):
            path = self.path(name, PEER.encode())
            os.chmod(path, 0o755)
        return self.path("llama-bench")

    def compare(self, *arguments):
        return subprocess.run([sys.executable, os.path.join(ROOT, "bench", "compare.py"), "--cicada", PROGRAM, "-p", "8",
                               "-n", "4", "-r", "2", "-t", "1", *arguments], capture_output=True, text=True, timeout=120)

    def test_the_best_setting_of_a_peer_counts(self):
        out = self.path("bench")
        done = self.compare("-m", self.chain("alphabet.gguf"), "--peer", f"stub={self.peer()}", "--batches", "2",
                            "--out", out, "--limits", self.limits())
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "bench.json")) as result:
            workloads = json.load(result)["models"][0]["workloads"]
        self.assertEqual([workload["name"] for workload in workloads], ["prefill 8", "decode 4", "decode 4, 2 sequences"])
        for workload, speed in zip(workloads, (4.0, 4.0, 7.5)):
            peer = workload["peers"][0]
            self.assertEqual(peer["speed"]["runs"], [speed, speed])
            self.assertEqual(len(peer["tried"]), 4)
            self.assertAlmostEqual(peer["ratio"]["median"], workload["ours"]["median"] / speed)
            self.assertGreater(workload["limit"], 0)
        self.assertEqual(workloads[0]["peers"][0]["setting"], "-fa 1 --repack 0")
        for name in ("speed.svg", "bench.html"):
            with open(os.path.join(out, name)) as picture:
                self.assertIn("decode 4, 2 sequences", picture.read())

    def test_answers_with_and_without_drafts_stand_without_peers(self):
        out = self.path("bench")
        done = self.compare("-m", self.chain("alphabet.gguf"), "-p", "0", "-n", "0", "--answer", "4", "--out", out,
                            "--limits", self.limits())
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(out, "bench.json")) as result:
            workloads = json.load(result)["models"][0]["workloads"]
        self.assertEqual([workload["name"] for workload in workloads], ["answer 4", "answer 4, drafts"])
        for workload in workloads:
            self.assertEqual((workload["peers"], workload["limit"]), ([], None))
            self.assertGreater(workload["ours"]["median"], 0)

    def test_what_cannot_be_compared_is_one_sentence(self):
        model = self.chain("alphabet.gguf")
        for arguments, part in ((("-m", "no-such-model"), "no-such-model"), (("-m", model, "--peer", "x=/no/peer"), "/no/peer"),
                                (("-m", model, "--peer", "x"), "NAME=PATH"), (("-m", model, "--batches", "x"), "8,16"),
                                (("-m", model, "--peer", f"true={self.failing()}"), "status 3"),
                                (("-m", model, "--limits", model), "alphabet.gguf")):
            done = self.compare("--limits", self.limits(), *arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
            self.assertIn(part, done.stderr)

    def limits(self):
        speed = {"one": 1.0, "all": 2.0}
        return self.path("limits.json", json.dumps({"likwid_read_gb_per_s": None, "limits": {
            "read": [{"bytes": 1, "gb_per_s": speed}, {"bytes": 1 << 30, "gb_per_s": speed}],
            "int8_tops": speed, "barrier_ns": 9.0}}).encode())

    def failing(self):
        path = self.path("failing", b"#!/bin/sh\ncase $1 in --help) ;; *) exit 3 ;; esac\n")
        os.chmod(path, 0o755)
        return path

    def test_the_machines_limits_have_every_field(self):
        self.refused("bench", part="--machine")
        code, out, err = self.run_cli("bench", "--machine", "-t", "1", "--json", timeout=120, memory=2 << 30)
        self.assertEqual(code, 0, err)
        machine = json.loads(out)["machine"]
        sizes = [read["bytes"] for read in machine["read"]]
        self.assertEqual(sizes, sorted(sizes))
        for read in machine["read"]:
            self.assertGreater(min(read["gb_per_s"].values()), 0)
        self.assertGreater(min(machine["int8_tops"].values()), 0)
        self.assertGreaterEqual(machine["barrier_ns"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
