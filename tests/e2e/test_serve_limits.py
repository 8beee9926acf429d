"""`cicada serve` at its limits and at its end: cases BC-15, BC-16, BC-19 and BC-20, on every API."""
import json
import os
import signal
import time
import unittest

import made_models
from serve_apis import APIS, CHAT, CHATS, COMPLETIONS, MESSAGES
from serve_case import SLOW, SLOW_OPTIONS, ServeCase, wait_until
from test_files import hostile


class Limits(ServeCase):
    def test_logits_that_are_no_numbers_end_a_request_and_are_counted(self):
        server = self.serve("-m", self.path("head.gguf", made_models.chain_with_head(float("nan"))),
                            "--served-model-name", "chain")
        for stream in (False, True):
            body = COMPLETIONS.body("a", stream=stream, max_tokens=3)
            with server.connect() as connection:
                connection.ask("POST", COMPLETIONS.path, body)
                head = connection.head()
                said = b"".join(connection.pieces(head))
            self.assertEqual(head.status, 200 if stream else 500)  # a stream has begun by then
            self.assertIn(b"the server failed", said)
        self.assertTrue(wait_until(lambda: server.metric("vllm:corrupted_requests_total") == 2),
                        server.ask("GET", "/metrics").body.decode())
        self.assertEqual(server.ask("GET", "/health").status, 200)

    def test_prompts_without_room_are_refused_with_both_numbers(self):  # BC-16
        server = self.chain_server("--n-ctx", "64")
        for _, _, answer in self.answers(server, "a" * 62, max_tokens=8):
            self.assertEqual((answer.prompt_tokens, answer.completion_tokens), (63, 1))
        for api, _, answer in self.answers(server, "a" * 62, apis=[COMPLETIONS, CHAT], max_tokens=8):
            self.assertEqual(answer.only.finish, "length")
        for letters in (63, 64, 499):
            self.refused_by_all(server, "a" * letters, part=str(letters + 1))
            self.refused_by_all(server, "a" * letters, part="64")
        for api in CHATS:
            system = {"system": "a" * 100} if api is MESSAGES else {}
            prompt = "a" if api is MESSAGES else [{"role": "system", "content": "a" * 100},
                                                  {"role": "user", "content": "a"}]
            self.refused_by_all(server, prompt, part="102", apis=[api], **system)
        for _, _, answer in self.answers(server, "a" * 59, max_tokens=100):
            self.assertEqual((answer.prompt_tokens, answer.completion_tokens), (60, 4))

    def test_bad_files_are_refused_at_the_start(self):  # BC-19
        for name, data in hostile().items():
            path = self.path(name.replace(" ", "_") + ".gguf", data)
            with self.subTest(file=name):
                begin = time.monotonic()
                self.refused("serve", "-m", path, "--port", "0", part=os.path.basename(path))
                self.assertLess(time.monotonic() - begin, 10)
        good = made_models.chain()
        for name, data in {"cut": good[:-1], "half": good[:len(good) // 2]}.items():
            for how in ((), ("--in-process",)):
                path = self.path(name + ".gguf", data)
                self.refused("serve", "-m", path, "--port", "0", *how, part=os.path.basename(path))

    def slot_server(self):
        return self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-seqs", "1"))

    def check_free_slot(self, server, begin):
        """Within 2 s of `begin` another request has a token, and then nothing is left of the cancelled one."""
        self.assertEqual(self.answer(server, COMPLETIONS, "a", max_tokens=1).text, "b")
        self.assertLess(time.monotonic() - begin, 2)
        self.assertTrue(wait_until(lambda: self.active(server) == 0))

    @staticmethod
    def active(server):
        return server.metric("vllm:num_requests_running") + server.metric("vllm:num_requests_waiting")

    def go_away(self, server, api, prompt, stream, tokens, seconds):
        with server.connect() as connection:
            connection.ask("POST", api.path, api.body(prompt, stream=stream, max_tokens=tokens, temperature=0))
            if stream:
                head = connection.head()
                next(connection.pieces(head))
            else:
                self.assertTrue(wait_until(lambda: server.metric("vllm:num_requests_running") > 0))
                time.sleep(seconds)
            connection.reset()

    def test_a_client_that_goes_away_frees_its_slot(self):  # BC-15
        server = self.slot_server()
        for api in APIS:
            for stream in (True, False):
                with self.subTest(api=api.path, stream=stream):
                    self.go_away(server, api, "a", stream, 4000, 0.2)
                    self.check_free_slot(server, time.monotonic())
                    made = server.metric("vllm:generation_tokens_total")
                    time.sleep(0.3)
                    self.assertEqual(server.metric("vllm:generation_tokens_total"), made)
        # While a long prompt is being read.
        self.go_away(server, COMPLETIONS, "a" * 12_000, False, 10, 0.1)
        self.check_free_slot(server, time.monotonic())
        self.check_alive(server)

    def test_cancelled_requests_leave_nothing_behind(self):  # BC-15
        server = self.slot_server()
        pids = (server.process.pid, server.engine_pid())

        def weigh():
            memory = []
            for pid in pids:
                with open(f"/proc/{pid}/statm") as statm:
                    memory.append(int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
            return memory, [len(os.listdir(f"/proc/{pid}/fd")) for pid in pids]

        for _ in range(10):
            self.go_away(server, CHAT, "a", True, 4000, 0)
        self.assertTrue(wait_until(lambda: self.active(server) == 0))
        memory, files = weigh()
        for turn in range(50):
            self.go_away(server, APIS[turn % 3], "a", True, 4000, 0)
        self.check_free_slot(server, time.monotonic())
        self.assertTrue(wait_until(lambda: weigh()[1] <= files), (files, weigh()[1]))
        for before, after in zip(memory, weigh()[0]):
            self.assertLess(after - before, 8 << 20)

    def test_a_real_model_is_cancelled_at_once(self):  # BC-15
        server = self.serve("-m", self.cached_model("smollm2"), "--offline", "--max-num-seqs", "1",
                            "--served-model-name", "chain")
        prompt, long_prompt = "Once upon a time", "one two three four " * 1000
        for api, text, stream, tokens in ((CHAT, prompt, True, 4000), (MESSAGES, prompt, False, 4000),
                                          (COMPLETIONS, long_prompt, False, 10)):
            with self.subTest(api=api.path, stream=stream):
                self.go_away(server, api, text, stream, tokens, 1)
                begin = time.monotonic()
                self.answer(server, COMPLETIONS, "a", max_tokens=1)
                self.assertLess(time.monotonic() - begin, 2)
                self.assertTrue(wait_until(lambda: self.active(server) == 0))


class Ends(ServeCase):  # BC-20
    def start(self, *options):
        return self.serve("-m", self.model(*SLOW), *SLOW_OPTIONS, *options)

    def test_an_idle_server_ends_at_once_and_frees_its_port(self):
        model, port = self.model(), 0
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.serve("-m", model, listen=("--port", str(port)))
            port = server.address[1]
            self.check_alive(server)
            idle = server.connect()  # an idle connection holds nobody up
            begin = time.monotonic()
            server.signal(number)
            self.assertEqual(server.wait(), 0)
            self.assertLess(time.monotonic() - begin, 2)
            idle.__exit__()

    def test_a_running_stream_is_finished(self):
        for number, api in ((signal.SIGTERM, MESSAGES), (signal.SIGINT, CHAT)):
            with self.subTest(signal=number, api=api.path):
                server = self.start()
                with server.connect() as connection:
                    connection.ask("POST", api.path, api.body("a", stream=True, max_tokens=1300, temperature=0))
                    frames = connection.frames(connection.head())
                    begun = [next(frames)]
                    server.signal(number)
                    self.assertTrue(wait_until(lambda: self.refuses_connections(server)))
                    answer = api.streamed(iter([*begun, *frames]))
                self.assertEqual(answer.text, "bcdefghijklmnopqrstuvwxyza" * 50)
                self.assertEqual(server.wait(), 0)

    def refuses_connections(self, server):
        try:
            server.connect().__exit__()
            return False
        except ConnectionRefusedError:
            return True

    def ended(self, server, api, prompt, signals):
        """The last frame of a stream whose server was told to end; the exit status."""
        with server.connect() as connection:
            connection.ask("POST", api.path, api.body(prompt, stream=True, max_tokens=60_000, temperature=0))
            frames = connection.frames(connection.head())
            next(frames)
            for number in signals:
                server.signal(number)
                time.sleep(0.2)
            last = list(frames)[-1]
        return last, server.wait()

    def test_what_is_not_done_in_time_ends_with_an_error(self):
        # The last while its prompt is being read.
        for api, prompt, seconds in ((MESSAGES, "a", "1"), (COMPLETIONS, "a", "1"), (CHAT, "a" * 12_000, "1")):
            with self.subTest(api=api.path):
                server = self.start("--shutdown-timeout", seconds)
                begin = time.monotonic()
                last, status = self.ended(server, api, prompt, [signal.SIGTERM])
                self.assertLess(time.monotonic() - begin, 8)
                self.assertEqual(status, 0)
                self.check_last_error(api, last)

    def check_last_error(self, api, last):
        self.assertEqual(last.startswith(b"event: error\ndata: "), api is MESSAGES, last)
        error = json.loads(last.split(b"data: ")[1])["error"]
        self.assertIn("stopping", error["message"])

    def test_a_second_signal_ends_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.start()
            with server.connect() as connection:
                connection.ask("POST", MESSAGES.path, MESSAGES.body("a", stream=True, max_tokens=60_000))
                frames = connection.frames(connection.head())
                next(frames)
                server.signal(number)
                self.assertTrue(wait_until(lambda: self.refuses_connections(server)))
                next(frames)
                server.signal(number)
                begin = time.monotonic()
                # What was cut can not be taken for whole: the last chunk is missing.
                self.assertRaises(ConnectionError, lambda: list(frames))
                self.assertEqual(server.wait(), 1)
                self.assertLess(time.monotonic() - begin, 1)
            self.assertTrue(wait_until(lambda: server.engine_pid() is None))
            self.serve("-m", self.path("chain.gguf"), listen=("--port", str(server.address[1])))


if __name__ == "__main__":
    unittest.main(verbosity=1)
