"""`cicada serve` as its clients see it: errors, keys, headers, models, attestation, usage, buffers."""
import json
import unittest

from serve_apis import APIS, CHAT, COMPLETIONS, MESSAGES, texts
from serve_case import SLOW, SLOW_OPTIONS, ServeCase

MIB = 1 << 20


class Errors(ServeCase):
    def test_what_is_not_there(self):
        server = self.chain_server()
        for path in ("/nothing", "/v1", "/v1/message", "/v1/messages/", "/v1/embeddings", "/v1/responses", "//",
                     "/v1/messages/batches", "/%2e%2e/etc/passwd", "/" + "a" * 5000):
            for method in ("GET", "POST", "DELETE", "PATCH"):
                self.check_refusal(server.ask(method, path, {} if method != "GET" else None), 404)
        self.check_refusal(server.ask("GET", "/v1/models/no-such"), 404, "no-such")
        self.check_alive(server)

    def test_methods_that_a_path_does_not_take(self):
        server = self.chain_server()
        for method, path, allowed in (("GET", "/v1/messages", "POST"), ("DELETE", "/v1/chat/completions", "POST"),
                                      ("PUT", "/tokenize", "POST"), ("POST", "/v1/models", "GET"),
                                      ("POST", "/metrics", "GET"), ("BREW", "/health", "GET")):
            reply = server.ask(method, path)
            self.check_refusal(reply, 405, allowed)
            self.assertIn(allowed, reply.header("allow"))
        with server.connect() as connection:  # no body follows a HEAD
            connection.ask("HEAD", "/v1/messages")
            self.assertEqual(connection.reply().status, 405)
            self.assertEqual(connection.ask("GET", "/health").reply().status, 200)

    def test_bodies_that_are_none(self):
        server = self.chain_server()
        posts = [api.path for api in APIS] + ["/v1/messages/count_tokens", "/tokenize", "/detokenize"]
        deep = b"[" * 100 + b"]" * 100
        for path in posts:
            for body in (b"", b"{", b"null", b"[]", b'"a"', b"{}", b"\xff\xfe{}", b'{"model": "\xff"}', deep,
                         b'{"a":' + deep + b"}", b'{"model": "chain", "messages": {}, "prompt": {}}', b"{} {}"):
                with self.subTest(path=path, body=body[:20]):
                    self.check_refusal(server.post(path, body), 400)
            self.check_refusal(server.post(path, {"model": "chain", "padding": deep.decode() * 10}), 400)
        self.check_alive(server)

    def test_requests_that_are_too_large(self):
        server = self.chain_server()
        for path in ("/v1/messages", "/v1/chat/completions", "/nothing"):
            for more in ((), (("expect", "100-continue"),)):
                with server.connect() as connection:
                    head = [f"POST {path} HTTP/1.1", "host: test", f"content-length: {32 * MIB + 1}",
                            *(f"{name}: {value}" for name, value in more)]
                    connection.send("\r\n".join(head).encode() + b"\r\n\r\n")
                    if not more:
                        connection.send(b" " * MIB)
                    self.check_refusal(connection.reply(), 413)
        with server.connect() as connection:  # sent in chunks, nobody knows before
            connection.send(b"POST /v1/messages HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(34):
                connection.send(b"100000\r\n" + b" " * MIB + b"\r\n")
            self.check_refusal(connection.reply(), 413)
        for headers in ([("x-long", "a" * (65 << 10))], [(f"x-{i}", "a" * 100) for i in range(700)]):
            self.check_refusal(server.ask("GET", "/health", headers=headers), 431)
        self.check_refusal(server.ask("GET", "/" + "a" * (65 << 10)), 431)
        self.check_alive(server)

    def test_requests_that_are_malformed(self):
        server = self.chain_server()
        for data, status in ((b"GET /health HTTP/1.1\r\n\r\n", 400),
                             (b"GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
                             (b"GET health HTTP/1.1\r\nhost: a\r\n\r\n", 400), (b"\0\1\2\3\r\n\r\n", 400),
                             (b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n"
                              b"transfer-encoding: chunked\r\n\r\n", 400),
                             (b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n", 400),
                             (b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n", 501),
                             (b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n"
                              b"expect: the-spanish-inquisition\r\n\r\n{}", 417),
                             (b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", 501)):
            with self.subTest(request=data), server.connect() as connection:
                connection.send(data)
                self.check_refusal(connection.reply(), status)
        self.check_alive(server)

    def test_an_error_has_an_id_of_its_own(self):
        server = self.chain_server()
        ids = {server.ask("GET", path).header("request-id") for path in ("/health", "/nothing") for _ in range(20)}
        self.assertEqual(len(ids), 40)


class Keys(ServeCase):
    def server(self):
        keys = self.path("keys.txt", b"# who may ask\nalice: secret-of-alice\n\nsecret-of-nobody\n")
        return self.chain_server(options=("--api-key-file", keys, "--api-key", "third", "--block-size", "16"),
                                 headers=[("x-api-key", "third")])

    def test_a_key_is_needed_and_two_headers_bring_it(self):
        server = self.server()
        right = [[("x-api-key", "secret-of-alice")], [("authorization", "Bearer secret-of-alice")],
                 [("authorization", "bearer  secret-of-nobody ")], [("authorization", "Bearer third")],
                 [("x-api-key", "wrong"), ("authorization", "Bearer third")]]
        wrong = [[], [("x-api-key", "")], [("x-api-key", "secret-of-alic")], [("x-api-key", "secret-of-alicee")],
                 [("x-api-key", "secret-of-alicesecret-of-alice")], [("authorization", "Basic secret-of-alice")],
                 [("authorization", "secret-of-alice")], [("authorization", "Bearer")], [("x-api-key", "alice")],
                 [("x-api-key", "alice: secret-of-alice")], [("x-api-key", "# who may ask")]]
        for api in APIS:
            for headers in right:
                self.assertEqual(server.post(api.path, api.body("a", max_tokens=1), headers).status, 200, headers)
            for headers in wrong:
                reply = server.post(api.path, api.body("a", max_tokens=1), headers)
                self.check_refusal(reply, 401, "key")
                self.assertEqual(reply.header("www-authenticate"), "Bearer")
                self.assertEqual(reply.json()["error"]["type"], "authentication_error")
        for path in ("/v1/models", "/v1/models/chain", "/nothing"):
            self.check_refusal(server.ask("GET", path), 401)
        for path in ("/health", "/healthz", "/ping", "/version", "/metrics", "/"):
            self.assertEqual(server.ask("GET", path).status, 200, path)

    def test_prefixes_are_of_one_key(self):
        server, prompt = self.server(), "abcdefghijklmnopqrstuvwxyz" * 8

        def cached(key):
            reply = server.post(COMPLETIONS.path, COMPLETIONS.body(prompt, max_tokens=1), [("x-api-key", key)])
            return reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]

        self.assertEqual(cached("third"), 0)
        self.assertGreater(cached("third"), 150)
        self.assertEqual(cached("secret-of-alice"), 0)
        self.assertGreater(cached("secret-of-alice"), 150)

    def test_bad_files_of_keys_are_refused(self):
        model = self.model()
        for data in (b"", b"# none\n", b"alice:\n", b":secret\n"):
            keys = self.path("bad.txt", data)
            self.refused("serve", "-m", model, "--port", "0", "--api-key-file", keys, part="bad.txt")
        self.refused("serve", "-m", model, "--port", "0", "--api-key-file", "/no/such/file", part="/no/such/file")
        self.refused("serve", "-m", model, "--port", "0", "--api-key", "", part="--api-key")

    def test_others_than_this_machine_need_a_key(self):
        model = self.model()
        for host in ("0.0.0.0", "::", "10.0.0.1"):
            sentence = self.refused("serve", "-m", model, "--port", "0", "--host", host, part=host)
            self.assertIn("--api-key-file", sentence)
        for more in (("--api-key", "third"), ("--allow-open-bind",)):
            server = self.serve("-m", model, "--host", "0.0.0.0", *more)
            self.assertEqual(server.ask("GET", "/health").status, 200)
        self.assertEqual(self.serve("-m", model, "--host", "localhost").ask("GET", "/health").status, 200)


class Headers(ServeCase):
    def test_every_reply_says_how_much_is_left(self):
        server = self.chain_server()
        for reply in (server.ask("GET", "/health"), server.ask("GET", "/nothing"),
                      server.post(CHAT.path, CHAT.body("a", max_tokens=1)), server.post(CHAT.path, {})):
            for what in ("requests", "tokens", "input-tokens", "output-tokens"):
                limit, left, reset = (reply.header(f"anthropic-ratelimit-{what}-{name}")
                                      for name in ("limit", "remaining", "reset"))
                self.assertTrue(0 <= int(left) <= int(limit), reply.headers)
                self.assertRegex(reset, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")

    def test_head_is_get_without_the_body(self):
        server = self.chain_server()
        for path in ("/", "/health", "/v1/models", "/v1/models/chain", "/version"):
            with server.connect() as connection:
                head = connection.ask("HEAD", path).reply()
                get = connection.ask("GET", path).reply()  # the same connection: there was no body
            self.assertEqual((head.status, head.header("content-length")), (200, str(len(get.body))), path)
            self.assertEqual(get.header("content-length"), str(len(get.body)))

    def test_pages_of_allowed_origins_may_read(self):
        server = self.chain_server(options=("--allowed-origins", "http://good.test"))
        every = self.chain_server(options=("--allowed-origins", "*"))
        for one, origin, is_allowed in ((server, "http://good.test", True), (server, "http://good.test.evil", False),
                                        (server, "null", False), (every, "http://any.test", True),
                                        (self.chain_server(), "http://good.test", False)):
            for method, path, body in (("GET", "/v1/models", None), ("GET", "/nothing", None),
                                       ("POST", CHAT.path, CHAT.body("a", max_tokens=1, stream=True))):
                reply = one.ask(method, path, body, [("origin", origin)])
                self.assertEqual(reply.header("access-control-allow-origin"), origin if is_allowed else None)
            reply = one.ask("OPTIONS", CHAT.path, None, [("origin", origin), ("access-control-request-method", "POST")])
            self.assertEqual((reply.status, reply.body), (204, b""))
            self.assertIn("POST", reply.header("access-control-allow-methods"))
            self.assertIn("authorization", reply.header("access-control-allow-headers"))
            self.assertEqual(reply.header("access-control-allow-origin"), origin if is_allowed else None)

    def test_models_are_listed_in_pages(self):
        server = self.chain_server(options=[word for name in ("two", "three", "claude-*")
                                            for word in ("--served-model-name", name)])
        whole = server.ask("GET", "/v1/models").json()
        names = ["chain", "two", "three"]
        self.assertEqual(([model["id"] for model in whole["data"]], whole["has_more"]), (names, False))
        self.assertEqual((whole["object"], whole["first_id"], whole["last_id"]), ("list", "chain", "three"))
        for model in whole["data"]:
            self.assertEqual((model["type"], model["object"], model["lifecycle"]), ("model", "model", "active"))
            self.assertIsInstance(model["created"], int)
            self.assertRegex(model["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(server.ask("GET", "/v1/models/" + model["id"]).json(), model)
        for step, cursor in ((1, "after_id"), (2, "after_id"), (-1, "before_id")):
            seen, query = [], f"?limit={abs(step)}"
            if step < 0:
                seen, query = ["three"], query + "&before_id=three"
            while True:
                page = server.ask("GET", "/v1/models" + query).json()
                found = [model["id"] for model in page["data"]]
                seen = seen + found if step > 0 else found + seen
                if not page["has_more"]:
                    break
                edge = page["last_id"] if step > 0 else page["first_id"]
                query = f"?limit={abs(step)}&{cursor}={edge}"
            self.assertEqual(seen, names)
        for query in ("limit=0", "limit=1001", "limit=x", "after_id=nobody", "lifecycle[]=young"):
            self.check_refusal(server.ask("GET", "/v1/models?" + query), 400)
        self.assertEqual(server.ask("GET", "/v1/models?lifecycle%5B%5D=retired").json()["data"], [])
        # A name that a pattern stands for is served under that name.
        self.assertEqual(server.ask("GET", "/v1/models/claude-x").json()["id"], "claude-x")
        for api in APIS:
            reply = server.post(api.path, api.body("a", max_tokens=1, model="claude-any-9"))
            self.assertEqual(reply.json()["model"], "claude-any-9")
            self.check_refusal(server.post(api.path, api.body("a", max_tokens=1, model="claude")), 404, "chain")

    def test_whole_chats_say_how_many_tokens_they_took(self):
        server = self.chain_server()
        reply = server.post(CHAT.path, CHAT.body("ab", max_tokens=5))
        self.assertEqual(json.loads(reply.header("x-vllm-tokens")),
                         {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8})
        for api in (COMPLETIONS, MESSAGES):
            self.assertIsNone(server.post(api.path, api.body("a", max_tokens=1)).header("x-vllm-tokens"))


class Tokenised(ServeCase):
    def test_texts_and_chats_become_ids_and_come_back(self):
        server = self.chain_server("--template", "{% for m in messages %}{{ m.content }}{% endfor %}"
                                   "{% if add_generation_prompt %}xyz{% endif %}")

        def ids(**body):
            reply = server.post("/tokenize", body).json()
            self.assertEqual((reply["count"], reply["max_model_len"]), (len(reply["tokens"]), 4096))
            return reply["tokens"]

        text = ids(content="ab")
        self.assertEqual(ids(prompt="ab", add_special_tokens=False), text)
        self.assertEqual(ids(prompt="ab")[1:], text)
        self.assertEqual(ids(content="ab", add_special=True), ids(prompt="ab"))
        chat = [{"role": "user", "content": "ab"}]
        self.assertEqual(ids(messages=chat), ids(prompt="abxyz"))
        self.assertEqual(ids(messages=chat, add_generation_prompt=False), ids(prompt="ab"))
        self.assertEqual(ids(prompt="", add_special_tokens=False), [])
        reply = server.post("/tokenize", {"content": "a漢", "return_token_strs": True}).json()
        self.assertEqual(reply["token_strs"], ["a", "<0xE6>", "<0xBC>", "<0xA2>"])
        text = "a漢\n🦙"
        self.assertEqual(server.post("/detokenize", {"tokens": ids(content=text)}).json()["prompt"], text)
        for path, body in (("/tokenize", {"content": "a", "model": "no-such"}),
                           ("/detokenize", {"tokens": [], "model": "no-such"})):
            self.check_refusal(server.post(path, body), 404, "no-such")
        for tokens, part in (([-1], "-1"), ([1 << 20], str(1 << 20)), ([1 << 70], "number"), (["a"], "tokens.0"),
                             ([1.5], "tokens.0"), ([None], "tokens.0"), ({}, "tokens"), (None, "tokens")):
            self.check_refusal(server.post("/detokenize", {"tokens": tokens}), 400, part)


class Attested(ServeCase):
    def test_replies_say_what_model_made_them(self):
        for options, zeroed in (((), "blk.0"), (("--no-elide",), "")):
            server = self.chain_server(options=options)
            replies = [server.ask("GET", "/health"), server.ask("GET", "/nothing"), server.post(CHAT.path, {})]
            replies += [server.post(api.path, api.body("a", max_tokens=1, stream=stream))
                        for api in APIS for stream in (False, True)]
            for reply in replies:
                self.assertEqual((reply.header("x-model-arch"), reply.header("x-rope-theta")), ("llama", "10000.0"))
                self.assertEqual(reply.header("x-layer-zeroed"), zeroed or None)
            details = {"rope_base_freq": 10000, "zeroed_layers": [zeroed] if zeroed else []}
            for _, _, answer in self.answers(server, "a"):
                self.assertEqual(answer.usage["layer_zeroed"], zeroed)
                self.assertNotIn("architecture_details", answer.usage)
            for beta in ("architecture-details-2024-08", "other-2025-01-01, architecture-details-2024-08"):
                for _, _, answer in self.answers(server, "a", headers=[("anthropic-beta", beta)]):
                    self.assertEqual(answer.usage["architecture_details"], details)
        health = server.ask("GET", "/healthz").json()
        self.assertEqual((health["status"], health["arch"]), ("ok", "llama"))

    def test_requests_may_insist(self):
        server = self.chain_server()
        right = [[("x-model-arch", "llama")], [("x-rope-theta", "10000.0")], [("x-layer-zeroed", "blk.0")],
                 [("x-model-arch", "llama"), ("x-rope-theta", "10000.0"), ("x-layer-zeroed", "blk.0")]]
        wrong = [[("x-model-arch", "cicada-v1")], [("x-rope-theta", "500000.0")], [("x-layer-zeroed", "rel_pos_proj")],
                 [("x-layer-zeroed", "blk.0,blk.1")], [("x-model-arch", "llama"), ("x-rope-theta", "1.0")]]
        for api in APIS:
            for stream in (False, True):
                body = api.body("a", max_tokens=1, stream=stream)
                for headers in right:
                    self.assertEqual(server.post(api.path, body, headers).status, 200, headers)
                for headers in wrong:
                    sentence = self.check_refusal(server.post(api.path, body, headers), 400, headers[-1][0])
                    self.assertIn(headers[-1][1], sentence)
        self.check_refusal(server.post("/v1/messages/count_tokens", MESSAGES.body("a"), wrong[0]), 400, "cicada-v1")
        self.check_alive(server)


class Usage(ServeCase):
    LETTERS = "abcdefghijklmnopqrstuvwxyz"

    def test_what_is_counted_is_what_is_used(self):
        server = self.chain_server("--template", (
            "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
            "{% for c in m.tool_calls or [] %}{{ c | tojson }}{% endfor %}{% endfor %}{% if add_generation_prompt %}a"
            "{% endif %}"))
        tool = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {}}}
        use = [{"role": "user", "content": "a"},
               {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}}]},
               {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}]
        for prompt, fields in (("a", {}), ("漢🦙", {"system": "be brief"}), (use, {"tools": [tool]}),
                               ([{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}], {}),
                               ("a", {"tools": [tool], "tool_choice": {"type": "none"}}),
                               ("a" * 300, {"cache_control": {"type": "ephemeral"}})):
            counted = server.post("/v1/messages/count_tokens", MESSAGES.body(prompt, **fields)).json()
            self.assertEqual(set(counted), {"input_tokens"})
            for _, _, answer in self.answers(server, prompt, apis=[MESSAGES], max_tokens=1, **fields):
                self.assertEqual(answer.prompt_tokens, counted["input_tokens"])

    def test_marks_of_the_cache_are_kept_and_told(self):
        server = self.chain_server(options=("--block-size", "16"))
        for turn, (ttl, name) in enumerate((({}, "ephemeral_5m_input_tokens"),
                                            ({"ttl": "1h"}, "ephemeral_1h_input_tokens"))):
            mark = {"type": "ephemeral", **ttl}
            system = [{"type": "text", "text": str(turn) + self.LETTERS * 8, "cache_control": mark}]
            usages = [self.answer(server, MESSAGES, "b" * 10, system=system, stream=stream, max_tokens=1)
                      for stream in (False, True)]
            first, second = (answer.usage for answer in usages)
            self.assertEqual({answer.prompt_tokens for answer in usages}, {1 + 1 + 26 * 8 + 10})
            self.assertLessEqual(first["cache_read_input_tokens"], 1)  # all begin with the start token
            self.assertGreaterEqual(first["cache_creation_input_tokens"], 26 * 8 - 16)
            self.assertEqual(first["cache_creation"][name], first["cache_creation_input_tokens"])
            self.assertGreaterEqual(second["cache_read_input_tokens"], first["cache_creation_input_tokens"])
            self.assertEqual(second["cache_creation_input_tokens"], 0)
        # Without a mark prefixes are read all the same, and OpenAI's clients are told too.
        for api in (COMPLETIONS, CHAT):
            prompt = ("C" if api is CHAT else "c") + self.LETTERS * 8
            first, second = (self.answer(server, api, prompt, max_tokens=1).usage for _ in range(2))
            self.assertLessEqual(first["prompt_tokens_details"]["cached_tokens"], 1)
            self.assertGreaterEqual(second["prompt_tokens_details"]["cached_tokens"], 26 * 8 - 16)
            self.assertEqual(second["prompt_tokens"], first["prompt_tokens"])

    def test_an_agents_next_turn_reads_its_last_from_the_cache(self):
        # As Claude Code asks: the first block of the system prompt changes with each turn and is no part of it.
        server = self.chain_server("--template", (
            "{{ tools | tojson }}{% for m in messages %}({{ m.role }}){{ m.content }}{% endfor %}"),
            options=("-c", "16384"), probe=("a", "bcdefghi"))
        schema = {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}}
        tools = [{"name": f"tool{i}", "description": self.LETTERS, "input_schema": schema} for i in range(20)]
        messages, before = [], None
        for turn in range(3):
            messages.append({"role": "user", "content": self.LETTERS * 4 + str(turn)})
            system = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.36; cch={turn:05x}"},
                      {"type": "text", "text": self.LETTERS * 40, "cache_control": {"type": "ephemeral"}}]
            body = {"model": "chain", "max_tokens": 20, "temperature": 0, "system": system, "tools": tools,
                    "messages": messages}
            reply = server.post(MESSAGES.path, body).json()
            usage = reply["usage"]
            prompt = sum(usage[key] for key in ("input_tokens", "cache_read_input_tokens",
                                                "cache_creation_input_tokens"))
            if before is not None:
                self.assertGreaterEqual(usage["cache_read_input_tokens"], 0.9 * before, usage)
            before = prompt
            messages.append({"role": "assistant", "content": reply["content"]})
        self.assertGreater(before, 3000)


class Buffers(ServeCase):
    def pieces(self, server, api, headers=(), **fields):
        """What was written in one go, each; the text."""
        with server.connect() as connection:
            connection.ask("POST", api.path, api.body("a", stream=True, temperature=0, **fields), headers)
            pieces = list(connection.pieces(connection.head()))
        frames = b"".join(pieces).split(b"\n\n")
        self.assertEqual(frames.pop(), b"")
        return pieces, api.streamed(iter(frames)).text

    def test_a_stream_is_held_back_as_asked(self):
        server = self.chain_server(*SLOW, options=SLOW_OPTIONS)
        text = ("bcdefghijklmnopqrstuvwxyza" * 4)[:100]
        at_once, held = [], []
        for api in APIS:
            for hint in (0, "token", "0ms"):
                at_once.append(self.pieces(server, api, max_tokens=100, buffer_hint=hint))
            at_once.append(self.pieces(server, api, [("x-anthropic-stream-buffer", "0")], max_tokens=100))
            # The header says the last word.
            at_once.append(self.pieces(server, api, [("x-anthropic-stream-buffer", "0")], max_tokens=100,
                                       buffer_hint=1024))
            held.append(self.pieces(server, api, max_tokens=100, buffer_hint=1024))
            held.append(self.pieces(server, api, [("x-anthropic-stream-buffer", "1024")], max_tokens=100))
            pieces, said = self.pieces(server, api, max_tokens=100, buffer_hint="20ms")
            self.assertLess(len(pieces), 90)
            self.assertEqual(said, text)
        for pieces, said in at_once:
            self.assertGreater(len(pieces), 50)
            self.assertEqual(said, text)
        for pieces, said in held:
            # What begins the stream is not held back, and what ends it waits for nothing.
            self.assertTrue(all(len(piece) >= 1024 for piece in pieces[1:-1]), [len(piece) for piece in pieces])
            self.assertLess(len(pieces), 30)
            self.assertEqual(said, text)

    def test_words_are_sent_whole(self):
        server = self.chain_server("--order", "a", "one ", "tw", "o ", "thr", "e", "e ", "four", "</s>",
                                   probe=("a", "one two three four"))
        for api in APIS:
            pieces, said = self.pieces(server, api, max_tokens=20, buffer_hint="word")
            self.assertEqual(said, "one two three four")
            words = ["".join(texts(piece)).strip() for piece in pieces]
            self.assertEqual([word for word in words if word], ["one", "two", "three", "four"])

    def test_other_hints_are_refused(self):
        server = self.chain_server()
        for hint in (-1, 1.5, "", "letter", "ms", "-1ms", "99999999ms", 1 << 40, [], True):
            self.refused_by_all(server, "a", part="buffer_hint", buffer_hint=hint)
        for hint in ("-1", "x", "1.5", str(1 << 40), "1024 bytes"):
            reply = server.post(CHAT.path, CHAT.body("a"), [("x-anthropic-stream-buffer", hint)])
            self.check_refusal(reply, 400, "x-anthropic-stream-buffer")


if __name__ == "__main__":
    unittest.main(verbosity=1)
