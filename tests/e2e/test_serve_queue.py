"""`cicada serve` under load and under fire: the queue's limit, clients and engines that go away, the last answers of a
server that stops."""
import os
import random
import select
import signal
import statistics
import threading
import time
import unittest

from serve_apis import APIS, CHAT, COMPLETIONS, MESSAGES, texts
from serve_case import SLOW, SLOW_OPTIONS, ServeCase, wait_until

ALPHABET = "bcdefghijklmnopqrstuvwxyza"


def letters(count):
    """What the alphabet CHAIN answers to `a` in so many tokens."""
    return (ALPHABET * (count // 26 + 1))[:count]


class Clients:
    """Calls on threads of their own; results in order."""

    def __init__(self, calls):
        self.results = [None] * len(calls)
        self.threads = [threading.Thread(target=self._run, args=(i, call)) for i, call in enumerate(calls)]
        for thread in self.threads:
            thread.start()

    def _run(self, index, call):
        try:
            self.results[index] = call()
        except Exception as error:  # pylint: disable=broad-except  # whoever looks at the result sees it
            self.results[index] = error

    def join(self):
        for thread in self.threads:
            thread.join()
        return self.results


class Endless:
    """A stream from the alphabet CHAIN that is read until somebody has heard enough."""

    def __init__(self, server, api):
        self.api, self.connection = api, server.connect()
        body = api.body("a", stream=True, max_tokens=60_000, temperature=0)
        self.head = self.connection.ask("POST", api.path, body).head()
        self.text, self.is_enough = "", False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        for frame in self.connection.frames(self.head):
            self.text += "".join(texts(frame))
            if self.is_enough:
                return

    def hear(self, more=0):
        """The text, when so many letters more have come; then it is over."""
        wanted = len(self.text) + more
        came = wait_until(lambda: len(self.text) >= wanted)
        self.is_enough = True
        self.thread.join()
        self.connection.reset()
        assert came, f"no more than {len(self.text)} letters, {wanted} were waited for"
        return self.text


class QueueCase(ServeCase):
    def active(self, server):
        return server.metric("vllm:num_requests_running"), server.metric("vllm:num_requests_waiting")

    def wait_for_active(self, server, running, waiting):
        self.assertTrue(wait_until(lambda: self.active(server) == (running, waiting)), self.active(server))

    def check_nothing_left(self, server):
        self.wait_for_active(server, 0, 0)
        self.assertTrue(wait_until(lambda: server.metric("vllm:kv_cache_usage_perc") == 0))
        self.check_alive(server)

    def endless(self, server, apis):
        """Streams that run, one an API."""
        streams = [Endless(server, api) for api in apis]
        self.wait_for_active(server, len(streams), 0)
        return streams

    def check_undisturbed(self, streams):
        """They went on all the time, and still do."""
        for stream in streams:
            text = stream.hear(more=50)
            self.assertEqual(text, letters(len(text)))

    def stream(self, server, api, tokens):
        """A call for Clients: the text of a stream from the alphabet CHAIN."""
        return lambda: self.answer(server, api, "a", stream=True, max_tokens=tokens).text


class Queue(QueueCase):
    def queue_server(self):
        return self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-seqs", "2", "--max-queue", "2"))

    def eight_at_once(self, server, path, body):
        """What is refused of eight requests, of which none ends by itself."""
        waiting = [server.connect() for _ in range(8)]
        everybody, refused = list(waiting), []
        for connection in everybody:
            connection.ask("POST", path, body)
        while len(refused) < 4 or waiting and len(refused) < 8 and select.select(waiting, [], [], 0.1)[0]:
            for connection in select.select(waiting, [], [], 10)[0] or self.fail(f"only {refused} refused"):
                waiting.remove(connection)
                head = connection.head()
                if head.status != 200:
                    head.body = b"".join(connection.pieces(head))
                    refused.append(head)
        self.wait_for_active(server, 2, 2)
        for connection in everybody:
            connection.reset()
        self.wait_for_active(server, 0, 0)
        self.assertEqual(len(refused), 4)
        return refused

    def test_the_limit_is_exact(self):
        server = self.queue_server()
        for api in APIS:
            for stream in (False, True):
                with self.subTest(api=api.path, stream=stream):
                    replies = self.eight_at_once(server, api.path, api.body("a", stream=stream, max_tokens=60_000))
                    for reply in replies:
                        self.check_refusal(reply, 529, "full")
                        self.assertEqual(reply.json()["error"]["type"], "overloaded_error")
                        self.assertGreaterEqual(int(reply.header("retry-after")), 1)
        self.check_nothing_left(server)

    def test_who_tries_again_is_served(self):
        server = self.queue_server()

        def ask():
            for _ in range(5):
                reply = server.post(MESSAGES.path, MESSAGES.body("a", max_tokens=150, temperature=0))
                if reply.status != 529:
                    return reply.status
                time.sleep(int(reply.header("retry-after")))
            return reply.status

        self.assertEqual(Clients([ask] * 8).join(), [200] * 8)

    def test_a_choice_takes_a_place(self):
        server = self.queue_server()
        running = self.endless(server, [CHAT, MESSAGES])
        for api, fields in ((CHAT, {"n": 3}), (COMPLETIONS, {"n": 3}), (COMPLETIONS, {"prompt": ["a", "b", "c"]})):
            self.check_refusal(server.post(api.path, {**api.body("a", max_tokens=2), **fields}), 529, "full")
        both = Clients([lambda: self.answer(server, COMPLETIONS, "a", n=2, max_tokens=2)])
        self.wait_for_active(server, 2, 2)
        self.check_undisturbed(running)
        self.assertEqual([choice.text for choice in both.join()[0].choices.values()], ["bc", "bc"])
        # More than there will ever be places for is no reason to come again.
        for fields in ({"n": 5}, {"prompt": ["a"] * 5}):
            reply = server.post(COMPLETIONS.path, {**COMPLETIONS.body("a", max_tokens=2), **fields})
            self.check_refusal(reply, 400, "4")
        self.check_nothing_left(server)

    def test_prompts_are_bounded_in_tokens(self):
        server = self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-queued-tokens", "100"))
        # One that is alone may be as long as the context.
        self.assertEqual(self.answer(server, COMPLETIONS, "z" * 200, max_tokens=3).text, "abc")
        running = self.endless(server, [MESSAGES])
        self.assertEqual(self.answer(server, CHAT, "z" * 97, max_tokens=2).text, "ab")
        for api in APIS:
            for stream in (False, True):
                reply = server.post(api.path, api.body("z" * 98, stream=stream, max_tokens=2))
                self.check_refusal(reply, 529, "of 2 tokens are running")
                self.assertGreaterEqual(int(reply.header("retry-after")), 1)
        self.check_undisturbed(running)
        self.assertGreaterEqual(server.metric("vllm:admission_rejections_total"), 6)
        self.check_nothing_left(server)

    def test_one_that_does_not_fit_disturbs_nobody(self):
        server = self.chain_server(*SLOW, options=SLOW_OPTIONS)
        running = self.endless(server, APIS)
        for api in APIS:
            self.check_refusal(server.post(api.path, api.body("a" * 65536, max_tokens=2)), 400, "65537")
        self.check_undisturbed(running)


class Cancel(QueueCase):
    def first_token_seconds(self, server):
        begin = time.monotonic()
        self.answer(server, COMPLETIONS, "a", max_tokens=1)
        return time.monotonic() - begin

    def test_while_queued_nobody_else_notices(self):
        server = self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-seqs", "2"))
        running = self.endless(server, [CHAT, MESSAGES])
        for api in APIS:
            for stream in (False, True):
                with self.subTest(api=api.path, stream=stream):
                    with server.connect() as connection:
                        connection.ask("POST", api.path, api.body("a" * 6000, stream=stream, max_tokens=10))
                        self.wait_for_active(server, 2, 1)
                    begin = time.monotonic()
                    self.wait_for_active(server, 2, 0)
                    self.assertLess(time.monotonic() - begin, 1)
        self.check_undisturbed(running)
        self.check_nothing_left(server)

    def test_while_a_prompt_is_read_the_next_is_as_quick_as_ever(self):
        server = self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-seqs", "1"))
        idle = statistics.median(self.first_token_seconds(server) for _ in range(9))
        after = []
        for turn in range(9):
            api = APIS[turn % 3]
            with server.connect() as connection:
                # Other letters each time: what was read once would be found again.
                body = api.body(ALPHABET[turn] * 12_000, stream=turn % 2 == 0, max_tokens=10)
                connection.ask("POST", api.path, body)
                self.assertTrue(wait_until(lambda: self.active(server)[0] == 1))
            after.append(self.first_token_seconds(server))
        self.assertLess(statistics.median(after), 3 * idle + 0.1, (idle, after))
        self.check_nothing_left(server)

    def test_a_hundred_that_go_away_at_any_time(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        server = self.chain_server(*SLOW, options=(*SLOW_OPTIONS, "--max-num-seqs", "4"))
        undisturbed = self.endless(server, [COMPLETIONS])
        plans = [(chance.choice(APIS), chance.random() < 0.6, chance.choice((1, 50, 3000)), chance.uniform(0, 0.2),
                  chance.choice((True, False))) for _ in range(100)]

        def leave(plan):
            api, stream, prompt, seconds, is_rude = plan
            connection = server.connect()
            body = api.body("a" * prompt, stream=stream, max_tokens=5000, temperature=0)
            if seconds < 0.02:  # within the request itself
                connection.send(f"POST {api.path} HTTP/1.1\r\nhost: a\r\ncontent-length: 500\r\n\r\n{{".encode())
            else:
                connection.ask("POST", api.path, body)
            time.sleep(seconds)
            if is_rude:
                connection.reset()
            else:
                connection.__exit__()

        for begin in range(0, 100, 10):
            for result in Clients([lambda plan=plan: leave(plan) for plan in plans[begin:begin + 10]]).join():
                self.assertIsNone(result)
        self.check_undisturbed(undisturbed)
        self.check_nothing_left(server)


class LongPrompts(QueueCase):
    def test_whose_prompt_takes_long_hears_pings_until_it_is_read(self):
        server = self.chain_server(*SLOW, options=SLOW_OPTIONS)
        with server.connect() as stream:
            stream.ask("POST", MESSAGES.path, MESSAGES.body("a" * 40_000, stream=True, max_tokens=2))
            last, kinds = time.monotonic(), []
            for frame in stream.frames(stream.head()):
                now = time.monotonic()
                self.assertLess(now - last, 10, kinds)
                last = now
                kinds.append(frame.split(b"\n")[0].decode().removeprefix("event: "))
                if kinds[-1] == "content_block_delta":
                    break
            stream.reset()
        self.assertEqual(kinds[0], "message_start")
        self.assertGreaterEqual(kinds.count("ping"), 2, kinds)  # the second event of every stream is one
        self.assertLess(kinds.index("ping"), kinds.index("content_block_delta"))
        self.check_nothing_left(server)


class Stop(QueueCase):
    def test_what_runs_and_what_waits_is_finished(self):
        model = self.model(*SLOW)
        server = self.serve("-m", model, *SLOW_OPTIONS, "--max-num-seqs", "1")
        clients = Clients([self.stream(server, MESSAGES, 5000)])
        self.wait_for_active(server, 1, 0)
        others = Clients([self.stream(server, CHAT, 100), lambda: self.answer(server, COMPLETIONS, "a").text])
        self.wait_for_active(server, 1, 2)
        server.signal()
        self.assertEqual(clients.join() + others.join(), [letters(5000), letters(100), letters(8)])
        self.assertEqual(server.wait(), 0)

    def test_the_engine_ends_with_its_front(self):
        server = self.serve("-m", self.model())
        engine = server.engine_pid()
        server.kill()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{engine}")))


class Kill(QueueCase):
    def kill_engine(self, server):
        self.assertTrue(wait_until(lambda: server.engine_pid() is not None))
        os.kill(server.engine_pid(), signal.SIGKILL)

    def texts_through(self, server, prompt, kills, tokens, **fields):
        """The texts of a stream of each API at once, while the engine is killed at some tokens of the first."""
        def stream(api):
            return self.answer(server, api, prompt, stream=True, max_tokens=tokens, **fields).text

        others = Clients([lambda api=api: stream(api) for api in APIS[1:]])
        with server.connect() as connection:
            connection.ask("POST", APIS[0].path, APIS[0].body(prompt, stream=True, max_tokens=tokens, **fields))
            frames = connection.frames(connection.head())
            seen = []
            for token in sorted(kills):
                while len(seen) < token:
                    seen.append(next(frames))
                restarts = server.metric("cicada:engine_restarts_total")
                self.kill_engine(server)
                # An engine that dies again and again before it makes a token is another matter.
                self.assertTrue(wait_until(lambda: server.metric("cicada:engine_restarts_total") > restarts, 30))
                made = server.metric("vllm:generation_tokens_total")
                self.assertTrue(wait_until(lambda: server.metric("vllm:generation_tokens_total") >= made + 10, 30))
            first = APIS[0].streamed(iter([*seen, *frames])).text
        return [first, *others.join()]

    def test_killed_at_any_token_no_text_changes(self):
        server = self.serve("-m", self.model(*SLOW), "--served-model-name", "chain", *SLOW_OPTIONS)
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        kills = random.Random(seed).sample(range(1, 300), 5)
        whole = Clients([lambda: self.answer(server, CHAT, "a", max_tokens=3000).text])
        self.assertEqual(self.texts_through(server, "a", kills, 3000, temperature=0), [letters(3000)] * 3, kills)
        self.assertEqual(whole.join(), [letters(3000)], kills)
        self.assertEqual(server.metric("cicada:engine_restarts_total"), len(kills))
        self.assertGreaterEqual(server.metric("cicada:replayed_requests_total"), len(kills))
        self.check_nothing_left(server)
        server.signal()
        self.assertEqual(server.wait(), 0)

    def test_killed_with_a_real_model_no_text_changes(self):
        server = self.serve("-m", self.cached_model("smollm2"), "--offline", "--served-model-name", "chain")
        prompt, fields = "Tell me about the sea and the wind.", {"temperature": 0.9, "seed": 7, "top_p": 0.95}
        undisturbed = self.texts_through(server, prompt, [], 40, **fields)
        self.assertEqual(self.texts_through(server, prompt, [4, 16], 40, **fields), undisturbed)
        self.assertTrue(all(len(text) > 50 for text in undisturbed), undisturbed)
        self.assertEqual(undisturbed[1], undisturbed[2])  # both chats say the same
        self.assertEqual(server.metric("cicada:engine_restarts_total"), 2)

    def test_while_the_engine_is_away_health_says_so_and_clients_hear_pings(self):
        model = self.model(*SLOW)
        server = self.serve("-m", model, "--served-model-name", "chain", *SLOW_OPTIONS)
        with server.connect() as stream:
            stream.ask("POST", MESSAGES.path, MESSAGES.body("a", stream=True, max_tokens=400, temperature=0))
            frames = stream.frames(stream.head())
            seen = [next(frames) for _ in range(20)]
            os.rename(model, model + ".away")  # no engine can start
            self.kill_engine(server)
            begin = time.monotonic()
            self.assertTrue(wait_until(lambda: server.ask("GET", "/healthz").status == 503, 1))
            self.assertLess(time.monotonic() - begin, 1)
            health = server.ask("GET", "/health")
            self.assertEqual(health.json()["arch"], "llama")
            self.assertNotEqual(health.json()["status"], "ok")
            self.assertGreaterEqual(int(health.header("retry-after")), 1)
            # What comes meanwhile waits; what is wrong is told at once; what needs no engine is done.
            meanwhile = Clients([lambda: self.answer(server, CHAT, "a").text,
                                 lambda: self.answer(server, COMPLETIONS, "a", stream=True).text])
            self.check_refusal(server.post(CHAT.path, CHAT.body("a", max_tokens=-1)), 400)
            self.assertEqual(server.post("/tokenize", {"content": "ab"}).json()["count"], 2)
            pings = 0
            while pings < 2:
                seen.append(next(frames))
                pings += seen[-1] == b'event: ping\ndata: {"type":"ping"}'
            self.assertEqual(server.ask("GET", "/healthz").status, 503)
            os.rename(model + ".away", model)
            self.assertEqual(MESSAGES.streamed(iter([*seen, *frames])).text, letters(400))
            self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(meanwhile.join(), ["bcdefghi"] * 2)
        self.assertEqual(server.ask("GET", "/healthz").status, 200)
        self.check_nothing_left(server)

    def test_another_model_in_its_place_ends_it(self):
        model = self.model(*SLOW)
        server = self.serve("-m", model, *SLOW_OPTIONS)
        # Of the same shape: only its weights say that it is another.
        other = self.model(*SLOW, "--order", *"acegikmoqsuwybdfhjlnprtvxz", name="other.gguf")
        with server.connect() as stream:
            stream.ask("POST", MESSAGES.path, MESSAGES.body("a", stream=True, max_tokens=60_000, model="chain"))
            frames = stream.frames(stream.head())
            seen = [next(frames) for _ in range(20)]
            os.rename(other, model)
            self.kill_engine(server)
            seen += frames
        self.assertTrue(seen[-1].startswith(b"event: error\n"), seen[-1])
        text = "".join(word for frame in seen for word in texts(frame))
        self.assertEqual(text, letters(len(text)))
        self.assertEqual(server.wait(), 1)
        self.assertIn("another model", server.lines[-1])


if __name__ == "__main__":
    unittest.main(verbosity=1)
