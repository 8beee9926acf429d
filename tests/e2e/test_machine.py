"""Machines that are not as hoped for: levels, cores and threads. The answer is the same in all of them."""
import contextlib
import json
import os
import statistics
import subprocess
import unittest

from cli_case import PROGRAM, CliCase

LEVELS = ("scalar", "avx2", "avxvnni", "avx512vnni", "amx")

# Where a group with a quota can be made, and what to write into it for half a core: of both kinds of cgroups.
QUOTAS = (("/sys/fs/cgroup", {"cpu.max": "50000 100000"}),
          ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000"}))


def tell(path, text):
    handle = os.open(path, os.O_WRONLY)  # never makes a file
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


@contextlib.contextmanager
def half_a_core():
    """A call that puts its process under a quota of half a core; None where no group can be made."""
    for parent, quota in QUOTAS:
        group = os.path.join(parent, f"cicada-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            for name, value in quota.items():
                tell(os.path.join(group, name), value)
        except OSError:
            os.rmdir(group)
            continue
        try:
            yield lambda: tell(os.path.join(group, "cgroup.procs"), "0")
        finally:
            os.rmdir(group)
        return
    yield None


class Machine(CliCase):
    def test_a_level_works_or_is_refused_with_those_that_do(self):
        model = self.chain("alphabet.gguf")
        text = self.path("letters.txt", b"abcdefghijklmnopqrstuvwxyz" * 4)
        commands = (["run", "-m", model, "--raw", "-p", "a", "-n", "5", "--json"],
                    ["bench", "-m", model, "-p", "8", "-n", "4", "-r", "1", "--json"],
                    ["perplexity", "-m", model, "-f", text, "--ctx", "64", "--json"])
        for level in (*LEVELS, "sse9", "AVX2", "avx2 "):
            env = {"CICADA_FORCE_ISA": level}
            for command in commands:
                code, out, err = self.run_cli(*command, env=env)
                if code == 0:
                    self.assertEqual(json.loads(out)["isa"], level)
                    continue
                self.assertEqual((code, out), (2, ""), err)
                self.assertIn("kernel level " + (level if level in LEVELS else f"'{level}' is unknown"), err)
                self.assertIn("here it can be: scalar", err)
                self.assertEqual(err.count("\n"), 1)
        self.refused(*commands[0], env={"CICADA_FORCE_ISA": "sse9"})  # not every level can have worked

    def test_no_forced_level_is_the_best(self):
        model = self.chain("alphabet.gguf")
        for env in ({}, {"CICADA_FORCE_ISA": ""}):
            code, out, err = self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "5", "--json", env=env)
            self.assertEqual(code, 0, err)
            works = []
            for level in LEVELS:
                found = self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "5", "--json",
                                     env={"CICADA_FORCE_ISA": level})
                works += [level] if found[0] == 0 else []
            self.assertEqual(json.loads(out)["isa"], works[-1])
            self.assertEqual("AVX2" in err, works[-1] == "scalar", err)

    def test_threads_beyond_the_cores_answer_alike(self):
        model = self.chain("alphabet.gguf")
        text = self.path("text.txt", b"thequickbrownfoxjumpsoverthelazydog" * 10)
        answers = []
        for threads in ("1", "2", "3", "16", "64"):
            answer = self.answer(model, "a", "-n", "20", "-t", threads)
            code, out, err = self.run_cli("perplexity", "-m", model, "-f", text, "--ctx", "64", "-t", threads, "--json")
            self.assertEqual(code, 0, err)
            answers.append((answer["tokens"], json.loads(out)["nll"]))
        self.assertEqual([answer == answers[0] for answer in answers], [True] * len(answers))

    def test_half_a_core_is_one_thread_and_as_fast_as_one(self):
        with half_a_core() as join:
            if join is None:
                print(f"skipped: {self.id()}: no cgroup with a quota can be made here")
                self.skipTest("no cgroup with a quota can be made here")
            cached = self.run_cli("verify", "smollm2", "--offline")[0] == 0
            model = "smollm2" if cached else self.chain("alphabet.gguf")
            rates = {(): [], ("-t", "1"): []}
            for threads, seen in list(rates.items()) * 3:
                done = subprocess.run([PROGRAM, "bench", "-m", model, "-p", "8", "-n", "64", "-r", "1", *threads, "--json"],
                                      capture_output=True, check=True, timeout=120, preexec_fn=join)
                report = json.loads(done.stdout)
                self.assertEqual(report["threads"], 1)
                seen.append(report["decode"]["median"])
            if cached:  # a tiny model's rate is that of the clock's ticks
                chosen, one = (statistics.median(seen) for seen in rates.values())
                self.assertGreater(chosen, 0.9 * one, rates)

    def test_one_core_is_one_thread(self):
        model = self.chain("alphabet.gguf")
        core = min(os.sched_getaffinity(0))
        for threads, count in (([], 1), (["-t", "4"], 4)):
            done = subprocess.run([PROGRAM, "run", "-m", model, "--raw", "-p", "a", "-n", "8", *threads],
                                  capture_output=True, text=True, timeout=30,
                                  preexec_fn=lambda: os.sched_setaffinity(0, {core}))
            self.assertEqual((done.returncode, done.stdout), (0, "bcdefghi\n"), done.stderr)
            self.assertIn(f", {count} threads)", done.stderr)

    def test_impossible_numbers_of_threads_are_one_sentence(self):
        model = self.chain("alphabet.gguf")
        for threads in ("0", "-1", "1025", "100000", "99999999999999999999", "1.5", "two", ""):
            sentence = self.refused("run", "-m", model, "-p", "a", f"--threads={threads}", part="--threads")
            if threads.isdigit():
                self.assertIn("1024", sentence)


if __name__ == "__main__":
    unittest.main(verbosity=1)
