"""Pages and the prefix cache: reuse between processes, and every way a folder can be wrong."""
import json
import os
import resource
import subprocess
import unittest

from cli_case import PROGRAM, CliCase

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROMPT = (LETTERS * 8)[:200]  # 201 tokens with the one at the start: 3 pages of 64, 12 of 16


class Prefix(CliCase):
    def setUp(self):
        self.model = self.chain("prefix.gguf", "--n-ctx", "512")
        self.cache = os.path.join(self.folder.name, self.id().rsplit(".", 1)[1])

    def run_json(self, *arguments, prompt=PROMPT, model=None):
        code, out, err = self.run_cli("run", "-m", model or self.model, "--raw", "-p", prompt, "-n", "5", "--json",
                                      *arguments)
        self.assertEqual(code, 0, err)
        return json.loads(out), err

    def cached(self, *arguments, prompt=PROMPT, model=None):
        return self.run_json("--prefix-cache", self.cache, *arguments, prompt=prompt, model=model)

    @staticmethod
    def contents(path):
        with open(path, "rb") as file:
            return file.read()

    def pages(self):
        return sorted(os.path.join(self.cache, name) for name in os.listdir(self.cache))

    def test_a_second_process_reuses_whole_pages_and_answers_alike(self):
        cold, err = self.cached()
        self.assertEqual((cold["reused_tokens"], err), (0, ""))
        self.assertEqual(len(self.pages()), 3)
        other = PROMPT[:150] + "zz"
        for prompt, reused in ((PROMPT, 192), (other, 128), ("b" + PROMPT, 0)):
            answer, err = self.cached(prompt=prompt)
            self.assertEqual((answer["reused_tokens"], err), (reused, ""))
            plain, _ = self.run_json(prompt=prompt)
            self.assertEqual(answer["tokens"], plain["tokens"])
            self.assertEqual(plain["reused_tokens"], 0)

    def test_block_sizes_share_nothing_and_others_are_refused(self):
        answers = []
        for size, reused in (("16", 192), ("32", 192), ("64", 192)):
            self.assertEqual(self.cached("--block-size", size)[0]["reused_tokens"], 0)
            answer, _ = self.cached("--block-size", size)
            self.assertEqual(answer["reused_tokens"], reused)
            answers.append(answer["tokens"])
        self.assertEqual(answers, [answers[0]] * 3)
        self.assertEqual(len(self.pages()), 12 + 6 + 3)
        for size in ("8", "48", "128"):
            self.refused("run", "-m", self.model, "-p", "a", "--block-size", size, part="16, 32 and 64")
        for size in ("0", "x", "-16"):
            self.refused("run", "-m", self.model, "-p", "a", "--block-size=" + size, part=size)

    def test_another_model_another_kv_type_and_no_elision_find_nothing(self):
        self.cached()
        other = self.chain("other.gguf", "--n-ctx", "511")
        self.assertEqual(self.cached(model=other)[0]["reused_tokens"], 0)
        answer, _ = self.cached("--no-elide")
        self.assertEqual(answer["reused_tokens"], 0)
        self.assertEqual(self.cached("--kv", "q8")[0]["reused_tokens"], 0)
        self.assertEqual(self.cached("--kv", "q8")[0]["reused_tokens"], 192)
        self.assertEqual(self.cached()[0]["reused_tokens"], 192)

    def test_damaged_files_are_one_line_each_and_are_replaced(self):
        good, _ = self.cached()
        for damage in ("empty", "short", "flipped", "long", "swapped"):
            pages = self.pages()
            contents = [self.contents(page) for page in pages]
            for i, page in enumerate(pages):
                data = contents[i]
                flipped = data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]
                bad = {"empty": b"", "short": data[:-1], "flipped": flipped, "long": data + b"x",
                       "swapped": contents[i - 1]}[damage]
                with open(page, "wb") as out:
                    out.write(bad)
            answer, err = self.cached()
            self.assertEqual(answer["tokens"], good["tokens"], damage)
            self.assertEqual(answer["reused_tokens"], 0, damage)
            self.assertEqual(len(err.strip().splitlines()), 1, err)
            self.assertIn("it is ignored", err)
            # The first was asked for and written anew; the others come when they are asked for.
            for reused in (64, 128, 192):
                self.assertEqual(self.cached()[0]["reused_tokens"], reused, damage)

    def test_a_directory_in_a_pages_place_is_left_alone(self):
        good, _ = self.cached()
        for page in self.pages():
            os.remove(page)
            os.makedirs(os.path.join(page, "inside"))
        answer, err = self.cached()
        self.assertEqual((answer["tokens"], answer["reused_tokens"]), (good["tokens"], 0))
        self.assertIn("is a directory", err)
        self.assertTrue(all(os.path.isdir(os.path.join(page, "inside")) for page in self.pages()))

    def test_a_folder_that_cannot_be_one_is_refused(self):
        path = self.path("file.txt", b"text")
        self.refused("run", "-m", self.model, "-p", "a", "--prefix-cache", path, part="is a file")
        self.refused("chat", "-m", self.model, "--prefix-cache", path, part="is a file")
        self.refused("run", "-m", self.model, "-p", "a", "--prefix-cache", path + "/below", part="file.txt/below")
        self.assertEqual(self.contents(path), b"text")

    def test_a_full_disk_is_one_line_and_the_answer_is_whole(self):
        """A limit on the size of files stands for a full disk: pages are larger than it."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = subprocess.run([PROGRAM, "run", "-m", self.model, "--raw", "-p", PROMPT, "-n", "5", "--json",
                               "--prefix-cache", self.cache], capture_output=True, timeout=30, preexec_fn=limit,
                              restore_signals=False, check=False)
        err = done.stderr.decode()
        self.assertEqual(done.returncode, 0, err)
        self.assertEqual(json.loads(done.stdout)["tokens"], self.run_json()[0]["tokens"])
        self.assertEqual(len(err.strip().splitlines()), 1, err)
        self.assertIn("nothing more is written", err)
        self.assertEqual(self.pages(), [])

    def test_the_limit_is_kept(self):
        model = self.chain("long.gguf", "--n-ctx", "4096")
        options = ["--prefix-cache-mb", "1", "--block-size", "16"]
        size = 0
        for letter in LETTERS[:4]:
            self.cached(*options, prompt=letter + PROMPT * 15, model=model)
            self.assertLessEqual(sum(os.path.getsize(page) for page in self.pages()), 1000000)
            size = os.path.getsize(self.pages()[0])
        self.assertGreater(4 * 187 * size, 1000000, "nothing was tested")
        # The newest is there, and of the oldest at most its beginning.
        newest, _ = self.cached(*options, prompt="d" + PROMPT * 15, model=model)
        oldest, _ = self.cached(*options, prompt="a" + PROMPT * 15, model=model)
        self.assertEqual(newest["reused_tokens"], 187 * 16)
        self.assertLess(oldest["reused_tokens"], 187 * 16)

    def test_a_chat_goes_on_in_the_next_process(self):
        template = "{% for m in messages %}{{ m.content }}{% endfor %}"
        model = self.chain("chat.gguf", "--template", template, "--n-ctx", "512")
        lines = (PROMPT + "\nb\n").encode()
        first = self.run_cli("chat", "-m", model, "-n", "3", "--prefix-cache", self.cache, stdin=lines)
        self.assertEqual((first[0], first[2]), (0, ""))
        self.assertEqual(len(self.pages()), 3)
        times = [os.stat(page).st_mtime_ns for page in self.pages()]
        second = self.run_cli("chat", "-m", model, "-n", "3", "--prefix-cache", self.cache, stdin=lines)
        self.assertEqual(second, first)
        self.assertTrue(all(a < b for a, b in zip(times, [os.stat(p).st_mtime_ns for p in self.pages()])), "not used")

    def test_bench_measures_cold_memory_and_disk(self):
        code, out, err = self.run_cli("bench", "-m", self.model, "--prefix", "200", "--tail", "7", "-r", "2", "--json")
        self.assertEqual(code, 0, err)
        result = json.loads(out)
        self.assertEqual((result["memory_reused_tokens"], result["disk_reused_tokens"]), (200, 192))
        for field in ("cold_ms", "memory_ms", "disk_ms", "memory_share", "disk_share", "write_ms", "stored_bytes"):
            self.assertGreater(result[field], 0, field)


if __name__ == "__main__":
    unittest.main()
