"""`cicada run`, `tokenize` and `perplexity` on CHAIN: cases BC-03, 10 and 16, and bad options."""
import json
import os
import signal
import subprocess
import time
import unittest

import made_models
from cli_case import PROGRAM, CliCase


class Run(CliCase):
    def test_every_sharp_sampler_setting_is_greedy(self):  # BC-10
        model = self.chain("alphabet.gguf")
        settings = [["--temp", "0"], ["--temp", "0", "--top-p", "1"], ["--temp", "0", "--top-p", "0"],
                    ["--temp", "0", "--top-p", "1e-9"], ["--temp", "0", "--top-k", "0"],
                    ["--temp", "0", "--top-k", "1"], ["--temp", "0", "--min-p", "1"], ["--temp", "1e-9"],
                    ["--temp", "1", "--top-k", "1"]]
        for setting in settings:
            answer = self.answer(model, "a", "-n", "8", *setting)
            self.assertEqual(answer["text"], "bcdefghi", setting)
            self.assertEqual((answer["prompt_tokens"], answer["completion_tokens"]), (2, 8))
            self.assertEqual(answer["finish_reason"], "length")
            self.assertEqual(answer["elided"], ["blk.0"])

    def test_bad_sampler_numbers_are_refused(self):  # BC-10
        model = self.chain("alphabet.gguf")
        for option, value in [("--temp", "-1"), ("--temp", "1e999"), ("--temp", "nan"), ("--temp", "warm"),
                              ("--top-p", "1.5"), ("--min-p", "-0.1"), ("--top-k", "-3"), ("-n", "-5")]:
            self.refused("run", "-m", model, "--raw", "-p", "a", f"{option}={value}" if "--" in option else option,
                         *([] if "--" in option else [value]))

    def test_a_prompt_without_room_is_refused_with_both_numbers(self):  # BC-16
        model = self.chain("small.gguf", "--n-ctx", "64")
        answer = self.answer(model, "a" * 62)
        self.assertEqual((answer["prompt_tokens"], answer["completion_tokens"]), (63, 1))
        self.assertEqual(answer["finish_reason"], "length")
        for letters in (63, 64, 499):
            sentence = self.refused("run", "-m", model, "--raw", "-p", "a" * letters, "-c", "64",
                                    part=str(letters + 1))
            self.assertIn("64", sentence)
        answer = self.answer(model, "a" * 59, "-n", "100", "-c", "64")
        self.assertEqual(answer["completion_tokens"], 4)

    def test_a_number_with_a_leading_zero_is_not_octal(self):
        self.assertEqual(self.answer(self.chain("alphabet.gguf"), "a", "-n", "010")["completion_tokens"], 10)

    def test_an_end_token_ends_the_answer(self):
        model = self.chain("end.gguf", "--order", "q", "ok", "</s>")
        answer = self.answer(model, "q", "-n", "50")
        self.assertEqual((answer["text"], answer["finish_reason"]), ("ok", "stop"))

    def test_half_characters_are_never_printed(self):
        model = self.chain("llama.gguf", "--order", "q", "ok", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "!", "</s>")
        self.assertEqual(self.answer(model, "q", "-n", "50")["text"], "ok\U0001F999!")
        for tokens in (2, 3, 4):
            self.assertEqual(self.answer(model, "q", "-n", str(tokens))["text"], "ok\ufffd")

    def test_characters_outside_the_vocabulary_become_bytes(self):  # BC-03
        model = self.chain("alphabet.gguf")
        for text, count in [("aéb", 4), ("漢", 3), ("🦙", 4), ("\n", 1), ("\t", 1)]:
            code, out, err = self.run_cli("tokenize", "-m", model, "--json", stdin=text.encode())
            self.assertEqual(code, 0, err)
            tokens = json.loads(out)["tokens"]
            self.assertEqual(len(tokens), count, text)
            self.assertNotIn(0, tokens)
            back = self.run_cli("tokenize", "-m", model, "--decode", stdin=json.dumps(tokens).encode())
            self.assertEqual((back[0], back[1]), (0, text))

    def test_empty_prompts_and_bad_options_are_one_sentence(self):
        model = self.chain("alphabet.gguf")
        self.refused("run", "-m", model, "-p", "", part="empty")
        self.refused("run", "-m", model, "-p", "-", part="empty", stdin=b"")
        self.refused("run", "-m", model, "-p", "a", "--no-such-option")
        self.refused("run", "-m", "no-such-model", "-p", "a", "--offline", part="no-such-model")
        self.refused("run", "-m", "/", "-p", "a", part="directory")
        self.refused("run", "-m", model, "-p", "a", "--kv", "q3", part="q3")
        self.refused("run", "-m", model, "-p", "a", "-t", "0")
        self.refused("run", "-m", model, "-p", "a", "-c", "99999999999")
        self.refused("run", "-m", model, "-p", "a", part="sse9", env={"CICADA_FORCE_ISA": "sse9"})
        self.refused("no-such-command")
        self.refused()

    def test_invalid_utf8_is_refused_or_read_as_bytes(self):
        model = self.chain("alphabet.gguf", "--template", "{{ messages[-1].content }}")
        self.refused("run", "-m", model, "-p", "-", stdin=b"a\xff\xfeb", part="UTF-8")
        code, _, err = self.run_cli("run", "-m", model, "--raw", "-n", "3", "-p", "-", stdin=b"a\xff\xfeb")
        self.assertEqual(code, 0, err)

    def test_levels_answer_alike(self):
        model = self.chain("alphabet.gguf")
        for level in ("scalar", "avx2", "avx512vnni"):
            code, out, err = self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "5", "--json",
                                          env={"CICADA_FORCE_ISA": level})
            if code == 2 and "not supported by this processor" in err:
                print(f"skipped: level {level}, which this processor lacks")
                continue
            self.assertEqual(json.loads(out)["text"], "bcdef", err)
            self.assertEqual(json.loads(out)["isa"], level)

    def test_perplexity_needs_a_chunk_and_reports_every_field(self):
        model = self.chain("alphabet.gguf")
        text = self.path("text.txt", b"abcdefghijklmnopqrstuvwxyz" * 20)
        self.refused("perplexity", "-m", model, "-f", text, "--ctx", "4096", part="4096")
        self.refused("perplexity", "-m", model, "-f", self.path("none.txt"), part="none.txt")
        values = []
        for extra in ([], ["-b", "7"], ["--role", "decode"]):
            code, out, err = self.run_cli("perplexity", "-m", model, "-f", text, "--ctx", "64", "--json", *extra)
            self.assertEqual(code, 0, err)
            result = json.loads(out)
            self.assertEqual(result["chunks"], len(result["nll"]))
            self.assertEqual(result["tokens"], 31 * result["chunks"])
            self.assertGreater(result["kv_bytes_per_token"], 0)
            values.append(result["nll"])
        self.assertEqual(values[0], values[1])
        # Every letter but a leads to the next with a logit 32 above the rest: nothing is left to doubt.
        self.assertLess(result["perplexity"], 1.5)

    def test_bench_reports_every_field(self):
        model = self.chain("alphabet.gguf")
        code, out, err = self.run_cli("bench", "-m", model, "-p", "8", "-n", "4", "-r", "2", "-b", "3", "--json")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        for measure in ("prefill", "decode"):
            self.assertLessEqual(result[measure]["min"], result[measure]["median"])
            self.assertGreater(result[measure]["min"], 0)
        for field in ("rss_bytes", "kv_bytes_per_token", "gb_per_s", "isa"):
            self.assertIn(field, result)

    def test_chat_takes_turns_and_survives_a_message_that_does_not_fit(self):
        template = "{{ messages[-1].content }}"
        model = self.chain("chat.gguf", "--template", template, "--n-ctx", "64")
        code, out, err = self.run_cli("chat", "-m", model, "-n", "3", stdin=b"a\n" + b"b" * 100 + b"\nx\n")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.split(), ["bcd", "yza"])
        self.assertIn("101", err)
        self.assertEqual(self.run_cli("chat", "-m", model, "-n", "3", stdin=b"b" * 100)[0], 2)

    def test_one_sigterm_ends_a_chat(self):
        model = self.chain("endless.gguf", "--template", "{{ messages[-1].content }}", "--n-ctx", "65536")
        chat = subprocess.Popen([PROGRAM, "chat", "-m", model, "-c", "65536"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        with chat:
            chat.stdin.write(b"a\n")
            chat.stdin.flush()
            self.assertEqual(chat.stdout.read(1), b"b")
            chat.send_signal(signal.SIGTERM)
            chat.stdout.read()
            self.assertGreaterEqual(chat.wait(timeout=20), 0)

    def test_ctrl_c_ends_the_wait_for_standard_input(self):
        model = self.chain("alphabet.gguf")
        for arguments in (["tokenize", "-m", model], ["run", "-m", model, "--raw", "-p", "-"],
                          ["perplexity", "-m", model, "-f", "-"]):
            waiting = subprocess.Popen([PROGRAM, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE)
            with waiting:
                while not self.catches_ctrl_c(waiting.pid):
                    time.sleep(0.01)
                waiting.send_signal(signal.SIGINT)
                self.assertEqual(waiting.wait(timeout=10), 1, arguments)
                self.assertIn(b"stopped", waiting.stderr.read(), arguments)

    @staticmethod
    def catches_ctrl_c(pid):
        with open(f"/proc/{pid}/status") as status:
            caught = next(line.split()[1] for line in status if line.startswith("SigCgt"))
        return int(caught, 16) >> (signal.SIGINT - 1) & 1

    def test_threads_that_the_system_refuses_are_no_abort(self):
        model = self.chain("alphabet.gguf")
        limit = f"ulimit -v 600000; exec {PROGRAM} run -m {model} --raw -p a -n 3 -t 512"
        done = subprocess.run(["bash", "-c", limit], capture_output=True, text=True, timeout=60)
        if "AddressSanitizer" in done.stderr:
            self.skipTest("a sanitizer needs address space without limit")
        self.assertIn("of 512 work", done.stderr)
        # The stacks of those that started may leave nothing for the answer.
        self.assertIn((done.returncode, done.stdout), ((0, "bcd\n"), (1, "")), done.stderr)

    def test_output_that_nobody_takes_is_one_sentence(self):
        model = self.chain("alphabet.gguf")
        letters = self.path("letters.txt", b"abcdefghijklmnopqrstuvwxyz" * 20)
        commands = [["run", "-m", model, "--raw", "-p", "a", "-n", "5"],
                    ["run", "-m", model, "--raw", "-p", "a", "-n", "5", "--json"],
                    ["chat", "-m", model, "-n", "3"],
                    ["bench", "-m", model, "-p", "8", "-n", "4", "-r", "1"],
                    ["perplexity", "-m", model, "-f", letters, "--ctx", "64", "--chunks", "1"],
                    ["tokenize", "-m", model], ["inspect", model, "--json"], ["verify", model], ["pull", "--list"],
                    ["--help"], ["--version"], ["run", "--help"]]
        for command in commands:
            for name, output in (("a full disk", open("/dev/full", "wb")), ("a closed pipe", self.closed_pipe())):
                with output:
                    done = subprocess.run([PROGRAM, *command], input=b"a\n", stdout=output, stderr=subprocess.PIPE,
                                          timeout=30)
                said = done.stderr.decode()
                self.assertEqual(done.returncode, 1, f"{name}: {command}: {said}")
                self.assertEqual(said.count("standard output: "), 1, f"{name}: {command}: {said}")

    def test_errors_that_nobody_takes_keep_their_status(self):
        for arguments, status in ((["verify", "no-such-file", "--offline"], 2), (["no-such-command"], 2)):
            for errors in (open("/dev/full", "wb"), self.closed_pipe()):
                with errors:
                    done = subprocess.run([PROGRAM, *arguments], stderr=errors, timeout=30)
                self.assertEqual(done.returncode, status, arguments)

    def test_words_of_a_file_cannot_move_the_cursor(self):
        evil = "\x1b[2Jllama\r\x9b"
        model = self.path("evil.gguf", made_models.layered(evil))
        for command in (["run", "-m", model, "-p", "a"], ["inspect", model], ["verify", model],
                        ["tokenize", "-m", model]):
            _, out, err = self.run_cli(*command)
            self.assertFalse(set("\x1b\r\x9b") & set(out + err), (command, out, err))

    @staticmethod
    def closed_pipe():
        reader, writer = os.pipe()
        os.close(reader)
        return open(writer, "wb")


if __name__ == "__main__":
    unittest.main(verbosity=1)
