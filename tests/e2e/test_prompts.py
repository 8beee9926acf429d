"""Prompts and templates through the program: cases BC-02, 07, 08 and 09; models that must not answer."""

import json
import random
import resource
import subprocess
import time
import unittest

import made_models
from cli_case import PROGRAM, CliCase

LENGTH = 200_000
MAX_SECONDS = 5
STACK_BYTES = 8 << 20


def small_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (STACK_BYTES, STACK_BYTES))


class LongRuns(CliCase):  # BC-02
    def tokenize(self, model, data, *options):
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, "tokenize", "-m", model, *options], input=data, timeout=30,
                              capture_output=True, preexec_fn=small_stack, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(time.monotonic() - begin, MAX_SECONDS)
        return done.stdout

    def texts(self):
        for letter in ("a", "7", " ", ".", "\n", "漢", "🦙"):
            yield repr(letter), letter * LENGTH
        print("seed 2")
        mixed = random.Random(2)
        letters = "ab Z09.,\n\t'éß漢字🦙👩‍🚀\u0301\u200b<|>_"
        yield "mixed", "".join(mixed.choice(letters) for _ in range(LENGTH))

    def test_runs_of_one_character_are_quick_and_come_back(self):
        models = {"spm": self.chain("alphabet.gguf")}
        for pre in ("gpt-2", "llama-bpe", "qwen2"):
            models[pre] = self.path(pre + ".gguf", made_models.byte_bpe(pre))
        for name, text in self.texts():
            for kind, model in models.items():
                with self.subTest(text=name, tokenizer=kind):
                    ids = self.tokenize(model, text.encode())
                    self.assertEqual(self.tokenize(model, ids, "--decode"), text.encode())

    def test_a_run_as_a_prompt_is_refused_with_both_numbers(self):
        model = self.chain("alphabet.gguf")
        sentence = self.refused("run", "-m", model, "--raw", "-c", "64", "-p", "-",
                                stdin=b"a" * LENGTH, part=str(LENGTH + 1))
        self.assertIn("64", sentence)


class Templates(CliCase):
    def ask(self, model, prompt, *options):
        code, out, err = self.run_cli("run", "-m", model, "-p", prompt, "-n", "1", "--json", *options)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_exactly_one_start_token(self):  # BC-07
        template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}q"
        for bos in ([], ["--no-bos"]):
            model = self.chain("bos.gguf", "--template", template, *bos)
            self.assertEqual(self.ask(model, "ab")["prompt_tokens"], 4, bos)

    def test_a_template_that_raises_is_refused_in_its_own_words(self):  # BC-08
        template = ("{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
                    "{{ messages[0].content }}")
        model = self.chain("raise.gguf", "--template", template)
        self.refused("run", "-m", model, "-p", "a", "--system", "s", part="no system here")
        self.assertEqual(self.ask(model, "a")["text"], "b")

    def test_a_template_that_raises_without_words_is_said_to_be_so(self):
        model = self.chain("silent.gguf", "--template", "{{ raise_exception() }}")
        self.refused("run", "-m", model, "-p", "a",
                     part="the chat template refused the conversation without saying why")

    def test_a_template_that_cannot_be_parsed_spoils_no_raw_prompt(self):  # BC-08
        model = self.chain("broken.gguf", "--template", "{% if messages %}{{ messages[0]")
        self.refused("run", "-m", model, "-p", "a", part=model + ": chat template: ")
        self.assertEqual(self.answer(model, "a", "-n", "3")["text"], "bcd")

    def test_a_loop_over_nothing_known_is_refused_or_empty(self):  # BC-08
        model = self.chain("undefined.gguf", "--template",
                           "{% for x in nobody %}{{ x }}{% endfor %}{{ messages[0].content }}")
        code, _, err = self.run_cli("run", "-m", model, "-p", "a", "-n", "1")
        self.assertIn(code, (0, 2), err)

    def test_a_template_without_end_is_stopped(self):  # BC-08
        loops = "{% for a in range(99999) %}" * 4 + "x" + "{% endfor %}" * 4
        model = self.chain("loops.gguf", "--template", loops)
        begin = time.monotonic()
        self.refused("run", "-m", model, "-p", "a", status=1, part="template")  # a limit ran out
        self.assertLess(time.monotonic() - begin, 10)

    def test_lines_of_block_tags_leave_nothing_behind(self):  # BC-09
        template = ("{% for m in messages %}\n"
                    "    {% if m.role %}\n"
                    "[{{ m.role }}]\n"
                    "    {% endif %}\n"
                    "{% endfor %}\n")
        model = self.chain("blocks.gguf", "--template", template)
        # Start token, then "[user]\n" and "[system]\n[user]\n", a token for each byte.
        self.assertEqual(self.ask(model, "a")["prompt_tokens"], 1 + len("[user]\n"))
        self.assertEqual(self.ask(model, "a", "--system", "s")["prompt_tokens"],
                         1 + len("[system]\n[user]\n"))


class NoModels(CliCase):
    """Files that open, and whose answer would be worth nothing."""

    def test_logits_that_are_not_finite_are_a_failure(self):
        for number in (float("nan"), 3e38):
            model = self.path("head.gguf", made_models.chain_with_head(number))
            for sampling in ([], ["--temp", "1"]):
                code, out, err = self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "3", *sampling)
                self.assertEqual((code, out.strip()), (1, ""), (number, sampling))
                self.assertIn("the model's logits are not finite", err)
            letters = self.path("letters.txt", b"abcdefghijklmnopqrstuvwxyz" * 4)
            self.refused("perplexity", "-m", model, "-f", letters, "--ctx", "32", "--json", status=1,
                         part="the model's logits are not finite")
        model = self.path("head.gguf", made_models.chain_with_head(1.0))
        self.assertEqual(self.answer(model, "a", "-n", "3")["completion_tokens"], 3)

    def test_tensors_of_another_model_are_refused_and_inspected(self):
        for name in ("blk.0.attn_q.bias", "output.bias", "blk.3.attn_norm.weight"):
            model = self.path("more.gguf", made_models.layered(more=[name]))
            sentence = f"tensor {name} is not part of architecture llama"
            self.refused("run", "-m", model, "--raw", "-p", "a", part=sentence)
            code, out, err = self.run_cli("inspect", model, "--json")
            self.assertEqual(code, 0, err)
            report = json.loads(out)
            self.assertEqual((report["runnable"], report["extra"], report["unused"]), (False, [name], []))
            self.assertIn(sentence, report["refusal"])
            self.assertIn("cannot be run: " + sentence, self.run_cli("inspect", model)[1])

    def test_frequencies_that_follow_from_the_configuration_are_ignored(self):
        model = self.path("old.gguf", made_models.layered(more=["blk.0.attn_rot_embd.weight"]))
        report = json.loads(self.run_cli("inspect", model, "--plan", "--json")[1])
        self.assertEqual((report["runnable"], report["extra"], report["unused"]),
                         (True, [], ["blk.0.attn_rot_embd.weight"]))

    def test_faults_of_a_tokenizer_name_the_file_once(self):
        model = self.path("bos.gguf", made_models.chain_with_key("tokenizer.ggml.bos_token_id", 288_000))
        text = self.path("text.txt", b"abc" * 100)
        for command in (["run", "-m", model, "--raw", "-p", "a"], ["tokenize", "-m", model],
                        ["perplexity", "-m", model, "-f", text, "--ctx", "16"]):
            sentence = self.refused(*command, part=model + ": key tokenizer.ggml.bos_token_id: 288000")
            self.assertEqual(sentence.count(model), 1, sentence)


if __name__ == "__main__":
    unittest.main(verbosity=1)
