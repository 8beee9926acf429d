#!/usr/bin/env python3
"""Writes the seeds of chat_fuzz (templates of references.json under a message with a mark) and of
reply_fuzz (an answer in each syntax)."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
SEEDS = HERE.parents[1] / "fuzz/seeds"

for case in json.loads((HERE / "references.json").read_text())["cases"]:
    group, name, chat = case["name"].split("/")
    if chat in ("two", "two_calls") or case["name"] == "thinking/on/thoughts":
        file = "thinking" if group == "thinking" else name
        (SEEDS / "chat_fuzz" / file).write_text("x<|im_end|>y <b>\n" + case["template"])

# The first byte chooses the syntax, the second the split (src/cicada/chat/reply_fuzz.cc).
REPLIES = {
    "text": "\x00\x21abab <tool_call> l>\n",
    "hermes": '\x01\x32Hm.\n<tool_call>\n{"name": "f", "arguments": {"x": [1, "\\u00e9}"]}}\n</tool_call>\n'
              '<tool_call>{"arguments": {}, "name": "g"}</tool_call> <tool_call>{"name": "h", "arguments": {oops',
    "llama3": '\x02\x13{"name": "f", "parameters": {"x": 1}}; {"name": "g", "parameters": {}}',
    "mistral": '\x03\x54[TOOL_CALLS] [{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"a": -1e5}}]',
    "thinking": '\x0d\x65\nhm </b>\n</think>\n\n<tool_call>{"name": "f"}</tool_call>',
}
(SEEDS / "reply_fuzz").mkdir(exist_ok=True)
for name, text in REPLIES.items():
    (SEEDS / "reply_fuzz" / name).write_text(text)
