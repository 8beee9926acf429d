"""Widths and policies of the KV cache from outside: what is taken, what is refused, and 131,072 tokens."""
import json
import os
import unittest

import made_models
from cli_case import CliCase


class Kv(CliCase):
    def home(self, name):
        folder = self.path(name)
        os.makedirs(os.path.join(folder, "models"), exist_ok=True)
        return {"CICADA_HOME": folder}

    def test_every_width_answers_as_f16_does(self):
        model = self.chain("alphabet.gguf")
        for kv in ("f16", "q8", "q6", "q4", "q8/q6", "f16/q4"):
            for policy in ("all", "window:64,sinks:2", "pages:4"):
                answer = self.answer(model, "a", "-n", "8", "--kv", kv, "--kv-force", "--kv-policy", policy)
                self.assertEqual(answer["text"], "bcdefghi", kv)
                self.assertEqual((answer["kv"], answer["kv_policy"]), (kv, policy))
                self.assertEqual("kv_loss" in answer, kv != "f16")

    def test_what_is_no_width_or_policy_is_refused_with_what_is(self):
        model = self.chain("alphabet.gguf")
        for option, value in (("--kv", "q5"), ("--kv", "q6/"), ("--kv", "q6,9:q8"), ("--kv-policy", "window:0"),
                              ("--kv-policy", "pages:3"), ("--kv-policy", "angle:nan"), ("--block-size", "48")):
            for command in (("run", "-p", "a"), ("bench",), ("perplexity", "-f", model)):
                if option == "--block-size" and command[0] != "run":
                    continue
                sentence = self.refused(command[0], "-m", model, *command[1:], option, value, part=value if ":" not in value else "'")
                self.assertTrue("allowed" in sentence or "layers 0 to" in sentence or "64" in sentence, sentence)

    def test_pages_chosen_for_decoded_tokens_are_not_measured_on_a_prompt(self):
        model = self.chain("alphabet.gguf")
        text = self.path("text.txt")
        with open(text, "w") as out:
            out.write("abcdefghijklmnopqrstuvwxyz" * 30)
        self.refused("perplexity", "-m", model, "-f", text, "--ctx", "32", "--kv-policy", "pages:4", part="--role decode")
        ways = [json.loads(self.run_cli("perplexity", "-m", model, "-f", text, "--ctx", "32", "--role", "decode", "--kv-policy",
                                        policy, "--json")[1])["nll"] for policy in ("all", "pages:4")]
        self.assertEqual(ways[0], ways[1])  # four pages are all there are

    def test_a_width_that_costs_too_much_is_refused_once_measured_and_remembered(self):
        model = self.chain("alphabet.gguf")
        home = self.home("home")
        first = json.loads(self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "1", "--kv", "q4", "--kv-force",
                                        "--json", env=home)[1])
        folder = os.path.join(home["CICADA_HOME"], "kv-loss")
        records = os.listdir(folder)
        self.assertEqual(len(records), 1)
        record = os.path.join(folder, records[0])
        with open(record, "w") as out:
            out.write("0.25")
        sentence = self.refused("run", "-m", model, "--raw", "-p", "a", "-n", "1", "--kv", "q4", part="0.25", env=home)
        self.assertIn("0.005", sentence)
        code, _, err = self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "1", "--kv", "q4", "--kv-force", env=home)
        self.assertEqual(code, 0)
        self.assertIn("0.25", err)
        for rubbish in ("", "abc", "-1", "nan", "0.1 0.2"):
            with open(record, "w") as out:
                out.write(rubbish)
            again = json.loads(self.run_cli("run", "-m", model, "--raw", "-p", "a", "-n", "1", "--kv", "q4",
                                            "--kv-force", "--json", env=home)[1])
            self.assertEqual(again["kv_loss"], first["kv_loss"], rubbish)

    def test_131072_tokens(self):
        model = self.path("long.gguf", made_models.layered("cicada-v1", layers=2, rel_pos_dim=32))
        code, out, err = self.run_cli("bench", "-m", model, "-p", "0", "-n", "12", "-d", "131060", "-r", "1", "--json",
                                      timeout=200)
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        total = sum(result[f"{part}_memory_bytes"] for part in ("weight", "kv", "work"))
        self.assertGreaterEqual(result["kv_memory_bytes"], 131072 * result["kv_bytes_per_token"])
        self.assertLess(result["rss_bytes"], total + (32 << 20))  # the program itself
        self.assertGreater(result["decode"]["median"], 0)
        self.assertGreater(result["depth_seconds"], 0)


if __name__ == "__main__":
    unittest.main()
