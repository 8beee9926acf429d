#!/usr/bin/env python3
"""Writes the seeds of chat_fuzz: every template of references.json under a message with a mark."""

import json
import pathlib

HERE = pathlib.Path(__file__).parent
SEEDS = HERE.parents[1] / "fuzz/seeds/chat_fuzz"

for case in json.loads((HERE / "references.json").read_text())["cases"]:
    _, name, chat = case["name"].split("/")
    if chat == "two":
        (SEEDS / name).write_text("x<|im_end|>y <b>\n" + case["template"])
