"""The three APIs in one form: a request from a prompt and fields, an answer from a reply or from a stream, whose
frames are checked one by one."""
import json
from dataclasses import dataclass, field


@dataclass
class Call:
    id: str
    name: str
    arguments: str = ""


@dataclass
class Choice:
    text: str = ""
    deltas: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    finish: str = None
    stop_sequence: str = None

    def add(self, text):
        self.text += text
        self.deltas.append(text)


@dataclass
class Answer:
    choices: dict
    prompt_tokens: int = None
    completion_tokens: int = None
    usage: dict = None  # as it came; None: none came
    id: str = ""
    names: list = field(default_factory=list)  # of a stream's frames

    @property
    def only(self):
        assert set(self.choices) == {0}, self.choices
        return self.choices[0]

    @property
    def text(self):
        return self.only.text


def strict_json(data):
    """A frame's JSON: one line of UTF-8 without halves of characters."""
    text = data.decode("utf-8")
    assert "\n" not in text and "\r" not in text, text
    value = json.loads(text)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate has no UTF-8
    return value


def texts(piece):
    """The texts in some frames of a stream, whatever API they are of."""
    for line in piece.split(b"\n"):
        if line.startswith(b"data: {"):
            event = strict_json(line[6:])
            for choice in event.get("choices") or []:
                yield choice.get("text") or choice.get("delta", {}).get("content") or ""
            yield event.get("delta", {}).get("text") or ""


class OpenAi:
    def body(self, prompt, stream=False, **fields):
        if stream:
            fields.setdefault("stream_options", {"include_usage": True})
        return {"model": "chain", "stream": stream, **self.prompt(prompt), **fields}

    def whole(self, reply):
        assert reply["object"] == self.object
        choices = {}
        for index, choice in enumerate(reply["choices"]):
            assert choice["index"] == index
            choices[index] = self.whole_choice(choice)
        return Answer(choices, reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"], reply["usage"],
                      reply["id"])

    def streamed(self, frames):
        """Checked: only data and comments; one id and one time; nothing of a choice behind its finish; the usage
        last of all, with no choices; [DONE] once, at the end."""
        answer = Answer({})
        same, is_done, has_usage = set(), False, False
        for frame in frames:
            if frame.startswith(b":"):
                continue
            assert not is_done, f"behind [DONE]: {frame}"
            assert frame.startswith(b"data: "), frame
            answer.names.append(frame[6:])
            if frame == b"data: [DONE]":
                is_done = True
                continue
            chunk = strict_json(frame[6:])
            assert "error" not in chunk, chunk
            assert not has_usage, f"behind the usage: {chunk}"
            assert chunk["object"] == self.chunk_object, chunk
            same.add((chunk["id"], chunk["created"], chunk["model"]))
            if chunk.get("usage") is not None:
                assert chunk["choices"] == [], chunk
                has_usage, answer.usage = True, chunk["usage"]
                answer.prompt_tokens = chunk["usage"]["prompt_tokens"]
                answer.completion_tokens = chunk["usage"]["completion_tokens"]
                continue
            [part] = chunk["choices"]
            is_first = part["index"] not in answer.choices
            choice = answer.choices.setdefault(part["index"], Choice())
            assert choice.finish is None, f"behind the finish: {chunk}"
            assert part["finish_reason"] is None or part["finish_reason"], chunk
            choice.finish = part["finish_reason"]
            self.add_delta(choice, part, is_first)
        assert is_done, "the stream has no [DONE]"
        assert len(same) == 1, same
        assert all(choice.finish for choice in answer.choices.values()), answer
        answer.id = next(iter(same))[0]
        return answer


class Completions(OpenAi):
    path = "/v1/completions"
    object = chunk_object = "text_completion"
    limit, end, stop = "length", "stop", "stop"

    @staticmethod
    def prompt(prompt):
        return {"prompt": prompt}

    @staticmethod
    def whole_choice(choice):
        return Choice(text=choice["text"], finish=choice["finish_reason"])

    @staticmethod
    def add_delta(choice, part, is_first):
        del is_first
        choice.add(part["text"])


class Chat(OpenAi):
    path = "/v1/chat/completions"
    object, chunk_object = "chat.completion", "chat.completion.chunk"
    limit, end, stop = "length", "stop", "stop"

    @staticmethod
    def prompt(prompt):
        return {"messages": as_messages(prompt)}

    @staticmethod
    def whole_choice(choice):
        message = choice["message"]
        assert message["role"] == "assistant"
        calls = [Call(call["id"], call["function"]["name"], call["function"]["arguments"])
                 for call in message.get("tool_calls") or []]
        return Choice(text=message["content"] or "", calls=calls, finish=choice["finish_reason"])

    @staticmethod
    def add_delta(choice, part, is_first):
        delta = part["delta"]
        assert (delta.get("role") == "assistant") == is_first, part
        if delta.get("content"):
            choice.add(delta["content"])
        for call in delta.get("tool_calls") or []:
            assert call["index"] in (len(choice.calls), len(choice.calls) - 1), part
            if call["index"] == len(choice.calls):
                assert call["type"] == "function", part
                choice.calls.append(Call(call["id"], call["function"]["name"]))
            else:
                assert not {"id", "type"} & set(call) and "name" not in call["function"], part
            choice.calls[-1].arguments += call["function"].get("arguments", "")


class Messages:
    path = "/v1/messages"
    limit, end, stop = "max_tokens", "end_turn", "stop_sequence"

    @staticmethod
    def body(prompt, stream=False, **fields):
        if "stop" in fields:
            fields["stop_sequences"] = fields.pop("stop")
        return {"model": "chain", "stream": stream, "messages": as_messages(prompt), **fields}

    @staticmethod
    def prompt_tokens(usage):
        return usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"]

    def whole(self, reply):
        assert (reply["type"], reply["role"]) == ("message", "assistant")
        choice = Choice(finish=reply["stop_reason"], stop_sequence=reply["stop_sequence"])
        for block in reply["content"]:
            if block["type"] == "text":
                choice.text += block["text"]
            elif block["type"] == "tool_use":
                choice.calls.append(Call(block["id"], block["name"], json.dumps(block["input"], ensure_ascii=False)))
        return Answer({0: choice}, self.prompt_tokens(reply["usage"]), reply["usage"]["output_tokens"], reply["usage"],
                      reply["id"])

    def streamed(self, frames):
        """Checked: names and types agree; message_start, blocks one behind the other from 0, message_delta,
        message_stop; pings anywhere but in front."""
        choice, open_block, num_blocks, kind = Choice(), None, 0, None
        answer = Answer({0: choice})
        for frame in frames:
            first, second = frame.split(b"\n")
            assert first.startswith(b"event: ") and second.startswith(b"data: "), frame
            name, event = first[7:].decode(), strict_json(second[6:])
            assert event["type"] == name, frame
            assert name != "error", frame
            assert not answer.names or answer.names[-1] != "message_stop", f"behind message_stop: {frame}"
            if name == "ping":
                assert answer.names, "a ping in front of message_start"
                continue
            answer.names.append(name)
            assert (name == "message_start") == (len(answer.names) == 1), answer.names
            if name == "message_start":
                assert event["message"]["content"] == [] and event["message"]["stop_reason"] is None, event
                answer.id = event["message"]["id"]
            elif name == "content_block_start":
                assert open_block is None and event["index"] == num_blocks, event
                open_block, num_blocks, kind = event["index"], num_blocks + 1, event["content_block"]["type"]
                if kind == "tool_use":
                    assert event["content_block"]["input"] == {}, event
                    choice.calls.append(Call(event["content_block"]["id"], event["content_block"]["name"]))
            elif name == "content_block_delta":
                assert event["index"] == open_block, event
                delta = event["delta"]
                if kind == "text":
                    assert delta["type"] == "text_delta", event
                    choice.add(delta["text"])
                elif kind == "tool_use":
                    assert delta["type"] == "input_json_delta", event
                    choice.calls[-1].arguments += delta["partial_json"]
            elif name == "content_block_stop":
                assert event["index"] == open_block, event
                open_block = None
            elif name == "message_delta":
                assert open_block is None and choice.finish is None, event
                choice.finish, choice.stop_sequence = event["delta"]["stop_reason"], event["delta"]["stop_sequence"]
                answer.usage, answer.completion_tokens = event["usage"], event["usage"]["output_tokens"]
                answer.prompt_tokens = self.prompt_tokens(event["usage"])
            else:
                assert name == "message_stop", event
        assert answer.names[-2:] == ["message_delta", "message_stop"], answer.names
        return answer


def as_messages(prompt):
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt


COMPLETIONS, CHAT, MESSAGES = Completions(), Chat(), Messages()
APIS = (COMPLETIONS, CHAT, MESSAGES)
CHATS = (CHAT, MESSAGES)
