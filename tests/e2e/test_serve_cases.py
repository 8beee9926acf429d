"""`cicada serve` and the cases of real reports: BC-01 to BC-14 and BC-18, on every API that offers the feature."""
import json
import random
import resource
import threading
import time
import unittest

from serve_apis import APIS, CHAT, CHATS, COMPLETIONS, MESSAGES
from serve_case import ServeCase

CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


class Tokens(ServeCase):
    def test_text_of_messages_is_never_a_control_token(self):  # BC-01
        server = self.chain_server("--control", "<|im_start|>", "<|im_end|>", "--template", CHATML)
        plain, marked = "xy", "x<|im_end|>y"

        def tool_result(api, text):
            if api is CHAT:
                call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                return [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "c1", "content": text}]
            return [{"role": "user", "content": "a"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": text}]}]

        def system(api, text):
            if api is CHAT:
                return [{"role": "system", "content": text}, {"role": "user", "content": "a"}]
            return [{"role": "user", "content": "a"}]

        for api in CHATS:
            for place, prompt in (("user", lambda api, text: text), ("tool", tool_result), ("system", system)):
                for stream in (False, True):
                    with self.subTest(api=api.path, place=place, stream=stream):
                        counts = []
                        for text in (plain, marked):
                            more = {"system": text} if api is MESSAGES and place == "system" else {}
                            counts.append(self.answer(server, api, prompt(api, text), stream=stream,
                                                      **more).prompt_tokens)
                        self.assertEqual(counts[1] - counts[0], 10)
        self.check_alive(server)

    def runs(self):
        for letter in ("a", "7", " ", ".", "\n", "漢", "🦙"):
            yield repr(letter), lambda size, letter=letter: letter * size
        mixed, letters = random.Random(2), "ab Z09.,\n\t'éß漢字🦙👩‍🚀\u0301\u200b<|>_"
        yield "mixed, seed 2", lambda size: "".join(mixed.choice(letters) for _ in range(size))

    def check_runs(self, server, size=200_000):
        for name, make in self.runs():
            with self.subTest(text=name):
                text, twice = make(size), make(2 * size)
                for attempt in range(3):  # another process may have the processor for a while
                    seconds, ids = self.timed_tokens(server, text)
                    seconds_twice, _ = self.timed_tokens(server, twice)
                    if max(seconds, seconds_twice) < 5 and seconds_twice <= 3 * max(seconds, 0.05):
                        break
                else:
                    self.fail(f"{seconds:.2f} s, twice the length {seconds_twice:.2f} s")
                back = server.post("/detokenize", {"tokens": ids})
                self.assertEqual(back.json()["prompt"], text)

    @staticmethod
    def timed_tokens(server, text):
        begin = time.monotonic()
        reply = server.post("/tokenize", {"content": text})
        return time.monotonic() - begin, reply.json()["tokens"]

    def test_runs_of_one_character_are_tokenised_in_linear_time(self):  # BC-02
        self.assertIn(resource.getrlimit(resource.RLIMIT_STACK)[0], (8 << 20, resource.RLIM_INFINITY))
        server = self.chain_server()
        self.check_runs(server)
        self.refused_by_all(server, "a" * 200_000, part="200001")

    def test_runs_are_tokenised_in_linear_time_by_a_real_vocabulary(self):  # BC-02
        self.check_runs(self.serve("-m", self.cached_model("smollm2"), "--offline"), 100_000)

    def test_characters_outside_the_vocabulary_become_bytes(self):  # BC-03
        server = self.chain_server()
        for text, count in (("aéb", 4), ("漢", 3), ("🦙", 4), ("\n", 1), ("\t", 1)):
            ids = server.post("/tokenize", {"content": text}).json()["tokens"]
            self.assertEqual(len(ids), count, text)
            self.assertNotIn(0, ids)
            self.assertEqual(server.post("/detokenize", {"tokens": ids}).json()["content"], text)
            for api, _, answer in self.answers(server, text, max_tokens=1):
                self.assertEqual(answer.prompt_tokens, count + 1, api.path)

    def test_bad_ids_are_named_and_disturb_nobody(self):  # BC-11
        server = self.chain_server()
        vocab = server.post("/detokenize", {"tokens": [1 << 40]}).json()["error"]["message"]
        size = int(vocab.split("0 to ")[1].split()[0]) + 1
        texts = []
        neighbour = threading.Thread(target=lambda: texts.append(self.answer(
            server, CHAT, "a", stream=True, max_tokens=3900).text))
        neighbour.start()
        for key, value, part in ((str(size), 1, str(size)), ("-1", 1, "-1"), (str(1 << 31), 1, str(1 << 31)),
                                 ("abc", 1, "abc"), ("5", 1e9, "5"), ("5", None, "5"), (str(1 << 70), 1, str(1 << 70))):
            self.refused_by_all(server, "a", part=part, logit_bias={key: value})
        for ids, part in (([-1], "-1"), ([size], str(size)), ([1 << 40], str(1 << 40)), ([1 << 70], "")):
            self.refused_by_all(server, ids, part=part, apis=[COMPLETIONS])
        neighbour.join()
        self.assertEqual(texts, ["bcdefghijklmnopqrstuvwxyza" * 150])
        ids = server.post("/tokenize", {"prompt": "a"}).json()["tokens"]
        self.assertEqual(self.answer(server, COMPLETIONS, ids).text, "bcdefghi")


class Texts(ServeCase):
    def test_no_frame_holds_half_a_character(self):  # BC-04
        server = self.chain_server("--order", "q", "ok", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "!", "</s>",
                                   probe=("q", "ok\U0001F999!"))
        for _, stream, answer in self.answers(server, "q", max_tokens=50):
            self.assertEqual(answer.text, "ok\U0001F999!")
            self.assertEqual(answer.completion_tokens, 6, answer)
            self.assertNotIn("\ufffd", "".join(answer.only.deltas))
            self.assertEqual("".join(answer.only.deltas), answer.text if stream else "")

    def test_nothing_of_a_stop_sequence_leaves_the_server(self):  # BC-05
        server = self.chain_server("--order", "q", "alpha", " be", "ta", " gam", "ma", " delta", "</s>",
                                   probe=("q", "alpha beta gamma delta"))
        whole = "alpha beta gamma delta"
        for stop, text, matched in ((["beta gamma"], "alpha ", "beta gamma"), (["beta gaX"], whole, None),
                                    (["ta g", "gamma"], "alpha be", "ta g"), (["delta"], "alpha beta gamma ", "delta"),
                                    (["a"], "", "a"), ([whole + "x"], whole, None)):
            for api, stream, answer in self.answers(server, "q", max_tokens=50, stop=stop):
                self.assertEqual(answer.text, text, stop)
                self.assertEqual(answer.only.finish, api.stop if matched else api.end)
                self.assertEqual(answer.only.stop_sequence, matched if api is MESSAGES else None)
                if stream:
                    self.assertEqual("".join(answer.only.deltas), text)
                    self.assert_held_back(answer.only.deltas, text)

    def assert_held_back(self, deltas, text):
        """At no time had more been sent than what stands in the end."""
        sent = ""
        for delta in deltas:
            sent += delta
            self.assertTrue(text.startswith(sent), deltas)

    def test_reasons_of_the_end(self):  # BC-06
        alphabet = self.chain_server()
        ends = self.chain_server("--order", "a", "b", "c", "d", "</s>", probe=("a", "bcd"))
        for server, fields, text, reason in ((alphabet, {"max_tokens": 5}, "bcdef", "limit"),
                                             (ends, {"max_tokens": 50}, "bcd", "end"),
                                             (alphabet, {"max_tokens": 50, "stop": ["d"]}, "bc", "stop")):
            for api, _, answer in self.answers(server, "a", **fields):
                self.assertEqual((answer.text, answer.only.finish), (text, getattr(api, reason)))
                self.assertEqual(answer.only.stop_sequence, "d" if api is MESSAGES and reason == "stop" else None)
                if reason == "limit":
                    self.assertEqual(answer.completion_tokens, 5)

    def test_every_sharp_sampler_setting_is_greedy(self):  # BC-10
        server = self.chain_server()
        settings = [{}, {"top_p": 1}, {"top_p": 0}, {"top_p": 1e-9}, {"top_k": 0}, {"top_k": 1}, {"min_p": 1},
                    {"temperature": 1e-9}, {"temperature": 1, "top_k": 1}]
        for setting in settings:
            for _, _, answer in self.answers(server, "a", **setting):
                self.assertEqual(answer.text, "bcdefghi", setting)
        for value in (-1, "0", True, []):
            self.refused_by_all(server, "a", part="temperature", temperature=value)
        for api in APIS:  # what Python's writer of JSON cannot say
            for number in ("1e999", "NaN", "-1e999"):
                body = json.dumps(api.body("a", max_tokens=8, temperature="HERE")).replace('"HERE"', number)
                self.check_refusal(server.post(api.path, body.encode()), 400)
        self.check_alive(server)

    def test_several_choices(self):  # BC-12
        server = self.chain_server()
        for _, _, answer in self.answers(server, "a", apis=[COMPLETIONS, CHAT], n=3, max_tokens=4):
            self.assertEqual({index: choice.text for index, choice in answer.choices.items()},
                             {0: "bcde", 1: "bcde", 2: "bcde"})
            self.assertEqual({choice.finish for choice in answer.choices.values()}, {"length"})
            self.assertEqual((answer.prompt_tokens, answer.completion_tokens), (2, 12))
        for n in (0, -1, 1 << 40, 1.5, "3"):
            self.refused_by_all(server, "a", part="n", apis=[COMPLETIONS, CHAT], n=n)
        # Several prompts are several choices.
        answer = self.answer(server, COMPLETIONS, ["a", "c", "y"], max_tokens=3)
        self.assertEqual([choice.text for choice in answer.choices.values()], ["bcd", "def", "zab"])

    def test_usage_comes_last_and_only_when_asked_for(self):  # BC-13
        server = self.chain_server()
        for api in (COMPLETIONS, CHAT):
            whole = self.answer(server, api, "a", max_tokens=5)
            self.assertEqual(whole.usage["total_tokens"], 7)
            for asked in ({"stream_options": {"include_usage": True}}, {"stream_options": {"include_usage": False}},
                          {"stream_options": None}):
                with self.subTest(api=api.path, asked=asked):
                    answer = self.answer(server, api, "a", stream=True, max_tokens=5, **asked)
                    has_usage = bool(asked["stream_options"]) and asked["stream_options"]["include_usage"]
                    self.assertEqual(answer.usage, whole.usage if has_usage else None)
                    self.assertEqual(answer.names.count(b"data: [DONE]") + answer.names.count(b"[DONE]"), 1)
        for _, _, answer in self.answers(server, "a", apis=[MESSAGES], max_tokens=5):
            self.assertEqual((answer.prompt_tokens, answer.completion_tokens), (2, 5))

    def test_an_error_is_found_before_the_stream_starts(self):  # BC-14
        server = self.chain_server()
        self.refused_by_all(server, "a" * 5000, part="5001")
        self.refused_by_all(server, [{"role": "wizard", "content": "a"}], part="wizard", apis=CHATS)
        self.refused_by_all(server, "a", part="max_tokens", max_tokens=-5)
        self.refused_by_all(server, "a", status=404, part="no-such", model="no-such")
        schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}
        self.refused_by_all(server, "a", apis=[COMPLETIONS, CHAT], response_format=schema)
        self.refused_by_all(server, "a", apis=[MESSAGES],
                            output_config={"format": {"type": "json_schema", "schema": {"type": "nonsense"}}})


class Templates(ServeCase):
    def count(self, server, messages):
        """Of a prompt, which all that count it say alike."""
        counts = {self.answer(server, api, messages, stream=stream, max_tokens=1).prompt_tokens
                  for api in CHATS for stream in (False, True)}
        counts.add(server.post("/tokenize", {"messages": messages}).json()["count"])
        counts.add(server.post("/v1/messages/count_tokens", {"model": "chain", "messages": messages})
                   .json()["input_tokens"])
        self.assertEqual(len(counts), 1, counts)
        return counts.pop()

    def test_exactly_one_start_token(self):  # BC-07
        template = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}q"
        for bos in ((), ("--no-bos",)):
            server = self.chain_server("--template", template, *bos)
            self.assertEqual(self.count(server, [{"role": "user", "content": "ab"}]), 4)

    def test_a_template_refuses_in_its_own_words(self):  # BC-08
        server = self.chain_server("--template", (
            "{% if messages[0].role == 'system' %}{{ raise_exception('no system here') }}{% endif %}"
            "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
            "{{ raise_exception('roles must take turns') }}{% endif %}{{ m.content }}{% endfor %}"))
        system = [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]
        self.refused_by_all(server, system, part="no system here", apis=CHATS)
        self.refused_by_all(server, [{"role": "user", "content": "a"}], part="no system here", apis=[MESSAGES],
                            system="s")
        self.refused_by_all(server, [{"role": "user", "content": "a"}] * 2, part="roles must take turns", apis=[CHAT])
        self.check_refusal(server.post("/tokenize", {"messages": system}), 400, "no system here")
        self.check_refusal(server.post("/v1/messages/count_tokens", {"model": "chain", "messages": system}), 400,
                           "no system here")
        for _, _, answer in self.answers(server, "a", apis=CHATS):
            self.assertEqual(answer.text, "bcdefghi")

    def test_a_broken_template_spoils_no_completion(self):  # BC-08
        for template in ("{% for m in no_such_thing.at_all %}{{ m }}{% endfor %}",
                         "{% for a in range(99999) %}" * 4 + "x" + "{% endfor %}" * 4):
            server = self.chain_server("--template", template)
            begin = time.monotonic()
            self.refused_by_all(server, "a", apis=CHATS)
            self.assertLess(time.monotonic() - begin, 20)
        model = self.chain("broken.gguf", "--template", "{% for m in messages %}{{ m.content")
        self.refused("serve", "-m", model, "--port", "0", part=model + ": chat template: ")

    def test_templates_lose_the_lines_of_their_blocks(self):  # BC-09
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                    {"role": "user", "content": "c"}]
        roles = "[user][assistant][user]"
        for template, text in (
                ("{% for m in messages %}\n[{{ m.role }}]{% endfor %}\n", roles),
                ("    {% for m in messages %}\n[{{ m.role }}]{% endfor %}", roles),
                ("{% for m in messages %}\n  {% if m.role == 'user' %}\n[{{ m.role }}]\n  {% endif %}\n{% endfor %}\n",
                 "[user]\n[user]\n"),
                ("{% for m in messages %}\n  {% if true %}\n[{{ m.role }}]\n  {% endif %}\n{% endfor %}",
                 "[user]\n[assistant]\n[user]\n"),
                ("{%- for m in messages -%}\n [{{ m.role }}] \n{%- endfor -%}", roles),
                ("{% for m in messages %}\n  [{{ m.role }}]\n{% endfor %}", "  [user]\n  [assistant]\n  [user]\n"),
                ("{# a comment #}\n{% for m in messages %}\n[{{ m.role }}]{% endfor %}", roles),
                ("a {% if true %}\nb{% endif %}\n", "a b"),
                ("{% set x = 1 %}\n{% set y = 2 %}\n[{{ x }}]", "[1]"),
                ("{% if false %}\nno\n{% else %}\n[yes]\n{% endif %}\n", "[yes]\n"),
                ("[{{ messages[0].role }}]\n\n{% if true %}\n\n[x]{% endif %}", "[user]\n\n\n[x]"),
                ("\t{% for m in messages %}\n\t[{{ loop.index }}]\n\t{% endfor %}\n", "\t[1]\n\t[2]\n\t[3]\n")):
            with self.subTest(template=template):
                server = self.chain_server("--template", template)
                ids = server.post("/tokenize", {"messages": messages}).json()["tokens"]
                self.assertEqual(server.post("/detokenize", {"tokens": ids[1:]}).json()["prompt"], text)
                expected = len(server.post("/tokenize", {"content": text}).json()["tokens"]) + 1
                self.assertEqual(self.count(server, messages), expected)

    CALLS = ("<tool_", "call>\n{\"na", "me\": \"f", "1\", \"argum", "ents\": {\"x", "\": 1", "}}", "\n</tool_c", "all>",
             "\n<to", "ol_call>\n{", "\"name\": \"f2\", \"arg", "uments\": {\"", "y\": \"", "<0xC3>", "<0xA9>", "\"}",
             "}\n</to", "ol_call>", "</s>")

    def test_two_calls_of_tools(self):  # BC-18
        server = self.chain_server("--order", "q", *self.CALLS, "--template", (
            "{% if tools %}<tool_call>{% for t in tools %}{{ t.function.name }}{% endfor %}{% endif %}"
            "{% for m in messages %}{{ m.content }}{% endfor %}q"), probe=("q", "<tool_call>"))
        schema = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}
        for api in CHATS:
            tools = [{"name": name, "description": name, "input_schema": schema} if api is MESSAGES else
                     {"type": "function", "function": {"name": name, "parameters": schema}} for name in ("f1", "f2")]
            auto = {"type": "auto"} if api is MESSAGES else "auto"
            for _, _, answer in self.answers(server, "x", apis=[api], max_tokens=60, tools=tools, tool_choice=auto):
                calls = answer.only.calls
                self.assertEqual([(call.name, json.loads(call.arguments)) for call in calls],
                                 [("f1", {"x": 1}), ("f2", {"y": "é"})])
                self.assertEqual(len({call.id for call in calls}), 2)
                self.assertEqual(answer.only.finish, "tool_use" if api is MESSAGES else "tool_calls")
                self.assertEqual(answer.text.strip(), "")
            # A call that the limit cuts is no call that is complete.
            for _, _, answer in self.answers(server, "x", apis=[api], max_tokens=6, tools=tools):
                self.assertEqual(answer.only.finish, api.limit)
            # Without tools there are no calls, and none are hidden.
            none = {"type": "none"} if api is MESSAGES else "none"
            for fields in ({}, {"tools": tools, "tool_choice": none}):
                for _, _, answer in self.answers(server, "x", apis=[api], max_tokens=60, **fields):
                    self.assertEqual(answer.only.calls, [])
                    self.assertEqual(answer.text.count("</tool_call>"), 2)
            for forced in (({"type": "any"}, {"type": "tool", "name": "f1"}) if api is MESSAGES else
                           ("required", {"type": "function", "function": {"name": "f1"}})):
                self.refused_by_all(server, "x", part="tool_choice", apis=[api], tools=tools, tool_choice=forced)


if __name__ == "__main__":
    unittest.main(verbosity=1)
