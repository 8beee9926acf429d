#!/usr/bin/env python3
"""Compares our streams of /v1/messages with the golden traces in the vendor's source distribution.

  check_sse.py SDIST.tar.gz

Of every kind of frame in the traces (event, and type of its block or delta): the fields that all traces have must
be in ours, with a type that one of the traces has there; null in a trace means that anything may stand there. Events
follow each other as somewhere in the traces, blocks are numbered 0, 1, 2 and do not interleave. Faults put into our
own streams prove at the end that the check sees them. Python's standard library only.
"""
import collections
import copy
import json
import re
import sys
import tarfile

from live_server import CALL, LiveServer, THINKING_TEMPLATE, THOUGHT

FIXTURES = "/tests/lib/streaming/fixtures/"
# Traces of what clients must live with, which a server must not send.
ODD = ("unknown_events", "omitted_usage", "invalid_json", "incomplete_partial_json")
# Needed by the client, whatever the traces say.
NEEDED = {"message_delta": {"usage.output_tokens": "int"}}
# In every trace, but optional by the vendor's types.
OPTIONAL = {"content_block_start tool_use": {"content_block.caller", "content_block.caller.type"}}
# An answer may be empty: no trace has one.
ALSO_FOLLOWS = {("message_start", "message_delta")}
# Kinds that the traces do not hold; by the vendor's types of events.
WITHOUT_TRACE = {
    "content_block_start thinking": {"index": "int", "content_block.thinking": "str", "content_block.signature": "str"},
    "content_block_delta thinking_delta": {"index": "int", "delta.thinking": "str"},
    "content_block_delta signature_delta": {"index": "int", "delta.signature": "str"},
}
ASK = {"model": "chain", "max_tokens": 64, "stream": True, "messages": [{"role": "user", "content": "a"}]}
TOOLS = [{"name": "get_weather", "input_schema": {"type": "object"}}]


class Mismatch(Exception):
    pass


def frames_of(text, is_ours):
    """[(event, data)]; of ours the bytes must be in the one form."""
    frames = []
    for block in re.split(r"\r?\n\r?\n", text.strip()):
        event = re.search(r"^event: ?(.*)$", block, re.M)
        data = re.search(r"^data: ?(.*)$", block, re.M)
        if is_ours and not re.fullmatch(r"event: [a-z_]+\ndata: \{.*\}", block):
            raise Mismatch(f"form of a frame: {block!r}")
        if event and data:
            frames.append((event[1].strip(), json.loads(data[1])))
    if is_ours and not text.endswith("}\n\n"):
        raise Mismatch("the stream does not end with a blank line")
    return frames


def kind_of(event, data):
    part = data.get("content_block") or (data.get("delta") if event == "content_block_delta" else None) or {}
    return f"{event} {part.get('type', '')}".strip()


def paths_of(value, path=""):
    """{"usage.output_tokens": "int", …}; what a list holds is not looked into."""
    found = {}
    for key, inner in value.items():
        name = f"{path}.{key}" if path else key
        found[name] = type(inner).__name__
        # The input of a call is the user's.
        if isinstance(inner, dict) and key != "input":
            found.update(paths_of(inner, name))
    return found


class Golden:
    """What all traces together say."""

    def __init__(self, traces):
        self.fields = collections.defaultdict(list)  # kind: [paths of a frame]
        self.follows = set(ALSO_FOLLOWS)
        for frames in traces:
            before = None
            for event, data in frames:
                self.fields[kind_of(event, data)].append(paths_of(data))
                if event != "ping":
                    self.follows.add((before, event))
                    before = event

    def check_frame(self, event, data):
        kind = kind_of(event, data)
        ours = paths_of(data)
        if data.get("type") != event:
            raise Mismatch(f"{kind}: type {data.get('type')!r} in an event {event!r}")
        frames = self.fields.get(kind)
        if frames is None and kind not in WITHOUT_TRACE:
            raise Mismatch(f"{kind}: no trace has it")
        needed = dict(WITHOUT_TRACE.get(kind, {}), **NEEDED.get(kind, {}))
        for name, wanted in needed.items():
            if ours.get(name) != wanted:
                raise Mismatch(f"{kind}: {name} is {ours.get(name, 'missing')}, needed: {wanted}")
        types = collections.defaultdict(set)
        for paths in frames or []:
            for name, found in paths.items():
                types[name].add(found)
        for name, found in types.items():
            is_needed = all(name in paths for paths in frames) and name not in OPTIONAL.get(kind, ())
            if name not in ours and is_needed:
                raise Mismatch(f"{kind}: {name} is missing")
            if name in ours and ours[name] not in found and "NoneType" not in found:
                raise Mismatch(f"{kind}: {name} is {ours[name]}, in the traces {sorted(found)}")

    def check(self, frames):
        before, open_block, blocks = None, None, 0
        for event, data in frames:
            self.check_frame(event, data)
            if event == "ping":
                continue
            if (before, event) not in self.follows:
                raise Mismatch(f"{event} behind {before}")
            if event == "content_block_start":
                if open_block is not None or data["index"] != blocks:
                    raise Mismatch(f"block {data['index']} begins, open: {open_block}, begun: {blocks}")
                open_block, blocks = blocks, blocks + 1
            elif event.startswith("content_block") and data["index"] != open_block:
                raise Mismatch(f"{event} of block {data['index']}, open: {open_block}")
            if event == "content_block_stop":
                open_block = None
            before = event
        if before != "message_stop":
            raise Mismatch(f"the last event is {before}")


def traces_of(sdist):
    with tarfile.open(sdist) as archive:
        for member in archive.getmembers():
            if FIXTURES in member.name and not any(odd in member.name for odd in ODD):
                yield member.name, frames_of(archive.extractfile(member).read().decode(), False)


def our_streams():
    """(name, frames) of live servers."""
    def stream(server, name, **more):
        status, _, body = server.request("POST", "/v1/messages", {**ASK, **more})
        assert status == 200, body
        return name, frames_of(body.decode(), True)
    with LiveServer() as server:
        yield stream(server, "text", max_tokens=5)
        yield stream(server, "stop sequence", stop_sequences=["fg"])
        yield stream(server, "stop sequence at once", stop_sequences=["b"])
    with LiveServer(pieces=CALL) as server:
        yield stream(server, "tool call", tools=TOOLS)
    with LiveServer(pieces=CALL[1:]) as server:
        yield stream(server, "tool call alone", tools=TOOLS)
    with LiveServer(pieces=THOUGHT, template=THINKING_TEMPLATE) as server:
        yield stream(server, "thinking", thinking={"type": "adaptive"})


def faults(frames):
    """Our stream with one thing wrong, each time another."""
    def at(name):
        return next(i for i, (event, _) in enumerate(frames) if event == name)

    def changed(name, change):
        broken = copy.deepcopy(frames)
        change(broken[at(name)][1])
        return broken
    yield "no id", changed("message_start", lambda data: data["message"].pop("id"))
    yield "no usage", changed("message_delta", lambda data: data.pop("usage"))
    yield "a text for a count", changed("message_start", lambda data: data["message"]["usage"].update(input_tokens="1"))
    yield "an index left out", changed("content_block_start", lambda data: data.update(index=1))
    yield "no start", frames[1:]
    yield "two starts", frames[:1] + frames
    yield "no end", frames[:-1]
    yield "a block left open", frames[:at("content_block_stop")] + frames[at("content_block_stop") + 1:]
    yield "an unknown event", frames[:1] + [("progress", {"type": "progress"})] + frames[1:]
    yield "another type", changed("message_stop", lambda data: data.update(type="message_end"))


def main():
    traces = dict(traces_of(sys.argv[1]))
    if len(traces) < 5:
        sys.exit(f"check_sse: only {len(traces)} traces in {sys.argv[1]}")
    golden = Golden(traces.values())
    kinds = collections.Counter()
    failed = False
    text_frames = None
    for name, frames in our_streams():
        try:
            golden.check(frames)
            print(f"check_sse: {name}: {len(frames)} frames as in the traces")
        except Mismatch as error:
            failed = True
            print(f"check_sse: {name}: {error}")
        kinds.update(kind_of(*frame) for frame in frames)
        text_frames = text_frames or frames
    for kind, count in sorted(kinds.items()):
        print(f"  {kind}: ours {count}, theirs {len(golden.fields.get(kind, []))}")
    for name, frames in faults(text_frames):
        try:
            golden.check(frames)
            failed = True
            print(f"check_sse: not seen: {name}")
        except Mismatch:
            pass
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
