#!/usr/bin/env python3
"""Negative fuzzing of both APIs over HTTP: valid bodies with something wrong.

  fuzz_api.py [--requests 6000] [--seed N] [--url http://HOST:PORT]     without a URL a CHAIN is served

Whatever is sent, the answer is a valid reply or a refusal in the envelope with the request's id: never a 5xx other
than 503 and 529, never a closed connection without an answer. The seed is printed; the same seed sends the same.
Python's standard library only.
"""
import argparse
import collections
import copy
import http.client
import json
import random
import sys
import threading
import time

from live_server import LiveServer

THREADS = 4
TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object", "properties": {"x": {"type": "integer"}}}}
ANTHROPIC = {
    "model": "chain", "max_tokens": 4, "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "b"},
                                          {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"x": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "is_error": False,
                                      "content": [{"type": "text", "text": "r"}]}]}],
    "stop_sequences": ["z"], "stream": False, "metadata": {"user_id": "u"}, "tools": [TOOL],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "thinking": {"type": "enabled", "budget_tokens": 1024},
    "temperature": 1.0, "top_p": 0.9, "top_k": 10, "seed": 1, "service_tier": "auto", "buffer_hint": "token"}
CHAT = {
    "model": "chain", "max_tokens": 4, "messages": [
        {"role": "developer", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "r"}],
    "stream": False, "stream_options": {"include_usage": True}, "n": 2, "stop": ["z"], "logprobs": True, "top_logprobs": 2,
    "logit_bias": {"5": 1}, "temperature": 1, "top_p": 1, "min_p": 0, "seed": 1, "presence_penalty": 0, "frequency_penalty": 0,
    "repetition_penalty": 1, "user": "u", "priority": 0, "tool_choice": "auto", "parallel_tool_calls": True,
    "response_format": {"type": "text"}, "modalities": ["text"], "chat_template_kwargs": {"enable_thinking": False},
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}]}
COMPLETION = {"model": "chain", "prompt": ["a", [1, 2]], "max_tokens": 4, "n": 1, "best_of": 1, "echo": False, "logprobs": 1,
              "stop": "z", "stream": False, "seed": 1, "temperature": 0.5, "suffix": None, "ignore_eos": False}
TARGETS = [("/v1/messages", ANTHROPIC), ("/v1/messages/count_tokens", ANTHROPIC), ("/v1/chat/completions", CHAT),
           ("/v1/completions", COMPLETION), ("/tokenize", {"prompt": "ab", "add_special_tokens": True}),
           ("/detokenize", {"tokens": [5, 6]})]
QUERIES = ["limit", "after_id", "before_id", "lifecycle[]", "beta", "", "%00", "%ff"]
WORDS = ["", "robot", "any", "auto", "system", "\u0000", "\ud83d\ude00", "é" * 300, "<|im_end|>", "../..", "null",
         "true", "1e999"]
NUMBERS = [0, -1, 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, -2**63 - 1, 10**400, 1e308, -0.0, 1e-320, 0.5]


class Raw:
    """Stands for a piece of JSON text that no value can stand for."""

    def __init__(self, text):
        self.text = text


def nested(depth, opening, closing):
    return Raw(opening * depth + closing * depth)


def odd_value(rng):
    return rng.choice([
        None, True, False, rng.choice(NUMBERS), rng.choice(WORDS), [], {}, [None], [[[]]], {"": None},
        {"type": rng.choice(WORDS)},
        [rng.choice(NUMBERS)] * rng.randrange(1, 50), {rng.choice(WORDS): rng.choice(NUMBERS)}, "x" * rng.randrange(1, 20000),
        nested(rng.choice([5, 60, 1000, 20000]), "[", "]"), nested(rng.choice([5, 60, 1000]), '{"a":', "}"),
        Raw("NaN"), Raw("-Infinity"), Raw("01"), Raw("1."), Raw("'x'"), Raw('"\\ud800"'), Raw('"\\u12"'),
        Raw("1e999"), Raw("\x01"),
        Raw("9" * 5000), Raw('"\t"'), [{}] * rng.choice([2, 1100]), {str(i): i for i in range(rng.choice([2, 1100]))}])


def places(value, found):
    """Every (container, key) below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        places(inner, found)
    return found


def written(value, twice):
    """JSON text; the key `twice` of objects comes two times."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        members = [f"{json.dumps(str(key))}:{written(inner, twice)}" for key, inner in value.items()]
        members += [f"{json.dumps(key)}:{json.dumps(5)}" for key in value if key == twice]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(inner, twice) for inner in value) + "]"
    return json.dumps(value)


def mutated_body(rng, body):
    body = copy.deepcopy(body)
    body["stream"] = rng.random() < 0.3
    twice = None
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        container, key = rng.choice(places(body, []))
        action = rng.randrange(6)
        if action == 0:
            del container[key]
        elif action == 1 and isinstance(container, dict):
            container[rng.choice(["unknown", "", "type", "role"])] = odd_value(rng)
        elif action == 2:
            twice = key
        elif action == 3 and isinstance(container, list):
            container.insert(0, container[key])
        else:
            container[key] = odd_value(rng)
        if not body:
            break
    data = written(body, twice).encode("utf-8", "surrogatepass")
    # Broken as text, too.
    action = rng.randrange(12)
    at = rng.randrange(len(data))
    if action == 0:
        return data[:at]
    if action == 1:
        return data[:at] + bytes([rng.choice([0x80, 0xC0, 0xFF, 0xED, 0xF5, 0])]) + data[at:]
    if action == 2:
        return data[:at] + rng.choice([b'"', b"}", b"]", b",", b"\\", b"\x00", b"{}", b" "]) + data[at + 1:]
    if action == 3:
        return rng.choice([b"", b" ", b"null", b"[]", b'"x"', b"\xef\xbb\xbf" + data, data + data,
                           data.decode(errors="replace").encode("utf-16")])
    return data


def make_request(rng):
    """(method, path, body, headers)"""
    headers = {"content-type": rng.choice(["application/json", "text/plain", "application/json; charset=utf-8", "x" * 100])}
    if rng.random() < 0.1:
        name = rng.choice(["anthropic-version", "anthropic-beta", "x-anthropic-stream-buffer", "accept", "authorization",
                           "x-api-key"])
        headers[name] = rng.choice(["", "0", "-1", "word", "99999999999", "2023-06-01", "Bearer", "x" * 2000])
    choice = rng.random()
    if choice < 0.05:
        query = "&".join(f"{rng.choice(QUERIES)}={rng.choice(['', '1', '0', '-1', '1001', 'chain', 'x', '%', '%zz', '9' * 30])}"
                         for _ in range(rng.randrange(4)))
        return "GET", f"/v1/models{rng.choice(['', '/', '/chain', '/x%2Fy', '/%F0%9F'])}?{query}", None, headers
    path, body = rng.choice(TARGETS)
    if choice < 0.08:
        path = rng.choice([path, "/v1/nowhere", "/v1/embeddings", "/v1/messages/batches"])
        return rng.choice(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]), path, None, headers
    return "POST", path, mutated_body(rng, body), headers


def check(status, headers, body, method):
    """What is wrong with a reply, or nothing."""
    if status >= 500 and status not in (503, 529):
        return f"status {status}"
    if not headers.get("request-id", "").startswith("req_") or headers.get("x-request-id") != headers["request-id"]:
        return "no request-id"
    if status == 204 and method == "OPTIONS":
        return None
    text = body.decode("utf-8")  # a UnicodeDecodeError is told by the caller
    if status >= 400:
        error = json.loads(text)
        if error["type"] != "error" or error["request_id"] != headers["request-id"]:
            return "not the envelope"
        inner = error["error"]
        if not inner["message"] or not isinstance(inner["type"], str) or not {"code", "param"} <= set(inner):
            return "not the envelope"
        return "a message of more than 2,000 bytes" if len(inner["message"]) > 2000 else None
    if not headers["content-type"].startswith("text/event-stream"):
        json.loads(text)
        return None
    for line in text.splitlines():
        if line.startswith("data: {"):
            event = json.loads(line[len("data: "):])
            if "error" in event:
                return f"an error in a stream: {line[:300]}"
    if "message_stop" not in text and "[DONE]" not in text:
        return "a stream without its end"
    return None


class Fuzzer:
    def __init__(self, address, seed, count):
        self.address, self.seed, self.count = address, seed, count
        self.lock = threading.Lock()
        self.statuses = collections.Counter()
        self.faults = []

    def tell(self, number, words, request):
        with self.lock:
            self.faults.append(f"request {number}: {words}; {request[0]} {request[1]} {(request[2] or b'')[:2000]!r}")

    def worker(self, first):
        connection = http.client.HTTPConnection(self.address, timeout=60)
        for number in range(first, self.count, THREADS):
            method, path, body, headers = request = make_request(random.Random(f"{self.seed}/{number}"))
            try:
                connection.request(method, path, body=body, headers=headers)
                reply = connection.getresponse()
                data = reply.read()
                got = {name.lower(): value for name, value in reply.getheaders()}
                words = check(reply.status, got, data, method)
                with self.lock:
                    self.statuses[reply.status] += 1
                if words:
                    self.tell(number, f"{words}: {data[:500]!r}", request)
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
                self.tell(number, f"{type(error).__name__} {error}", request)
                connection.close()

    def run(self):
        threads = [threading.Thread(target=self.worker, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def fuzz(address, seed, count):
    print(f"fuzz_api: seed {seed}, {count} requests", flush=True)
    begin = time.monotonic()
    fuzzer = Fuzzer(address, seed, count)
    fuzzer.run()
    words = ", ".join(f"{status}: {number}" for status, number in sorted(fuzzer.statuses.items()))
    print(f"fuzz_api: {time.monotonic() - begin:.0f} s; statuses {words}; faults {len(fuzzer.faults)}")
    for fault in fuzzer.faults[:20]:
        print("  " + fault)
    # Both sides must have been seen: what is accepted, and what is not.
    return not fuzzer.faults and fuzzer.statuses[200] > count // 50 and fuzzer.statuses[400] > count // 5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--url", help="http://HOST:PORT of a server whose model is called chain")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(2**32)
    if args.url:
        sys.exit(0 if fuzz(args.url.removeprefix("http://").rstrip("/"), seed, args.requests) else 1)
    with LiveServer("--ctx", "1024") as server:
        for path, body in TARGETS:
            for stream in (False, True):
                status, headers, reply = server.request("POST", path, {**body, "stream": stream})
                if status != 200 or check(status, headers, reply, "POST"):
                    sys.exit(f"fuzz_api: the body that is to be changed is refused itself: {path}: {reply[:500]!r}")
        is_clean = fuzz(server.address, seed, args.requests)
        ask = {"model": "chain", "max_tokens": 3, "messages": [{"role": "user", "content": "a"}]}
        status, _, body = server.request("POST", "/v1/messages", ask)
        is_well = status == 200 and json.loads(body)["content"][0]["text"] == "bcd" and server.process.poll() is None
        restarts = [line for line in server.request("GET", "/metrics")[2].decode().splitlines()
                    if line.startswith("cicada:engine_restarts_total")]
        print(f"fuzz_api: afterwards {'as before' if is_well else 'not well'}; {restarts[0]}")
        sys.exit(0 if is_clean and is_well and restarts[0].endswith(" 0") else 1)


if __name__ == "__main__":
    main()
