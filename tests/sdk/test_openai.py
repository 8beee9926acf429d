"""The vendor's Python client against a live server, with its strict validation of replies on."""
import asyncio
import concurrent.futures
import json

import openai
import pytest

from conftest import openai_client

ASK = {"model": "chain", "max_tokens": 5, "messages": [{"role": "user", "content": "a"}]}
REAL = {"model": "smollm2", "max_completion_tokens": 12, "messages": [{"role": "user", "content": "Name a colour."}]}
WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city.", "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}}


def token_id(server, text):
    return json.loads(server.request("POST", "/tokenize", {"prompt": text, "add_special_tokens": False})[2])["tokens"][0]


def test_chat_gives_exact_text(alphabet):
    completion = openai_client(alphabet).chat.completions.create(**ASK)
    choice = completion.choices[0]
    assert (completion.object, completion.model, choice.finish_reason) == ("chat.completion", "chain", "length")
    assert (choice.message.role, choice.message.content) == ("assistant", "bcdef")
    assert completion.usage.completion_tokens == 5
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + 5
    assert completion._request_id.startswith("req_")


def test_stream_has_one_id_and_a_role_first(alphabet):
    chunks = list(openai_client(alphabet).chat.completions.create(**ASK, stream=True))
    assert len({chunk.id for chunk in chunks}) == 1 and {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "bcdef"
    assert chunks[-1].choices[0].finish_reason == "length" and all(chunk.usage is None for chunk in chunks)


def test_usage_comes_last_where_asked(alphabet):
    chunks = list(openai_client(alphabet).chat.completions.create(**ASK, stream=True,
                                                                  stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 5
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_stream_helper(alphabet):
    with openai_client(alphabet).chat.completions.stream(**{**ASK, "max_tokens": 30}, stop="fg",
                                                         stream_options={"include_usage": True}) as stream:
        final = [event for event in stream] and stream.get_final_completion()
    assert final.choices[0].message.content == "bcde" and final.choices[0].finish_reason == "stop"
    # The client stops reading at the stop string; "f" and "g" were computed.
    assert final.usage.completion_tokens >= 4


def test_n_choices(alphabet):
    client = openai_client(alphabet)
    completion = client.chat.completions.create(**ASK, n=3)
    assert [(choice.index, choice.message.content) for choice in completion.choices] == [
        (0, "bcdef"), (1, "bcdef"), (2, "bcdef")]
    with pytest.raises(openai.LengthFinishReasonError):
        with client.chat.completions.stream(**ASK, n=3) as stream:
            stream.get_final_completion()
    texts = {0: "", 1: "", 2: ""}
    for chunk in client.chat.completions.create(**ASK, n=3, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert set(texts.values()) == {"bcdef"}


def test_logprobs(alphabet):
    client = openai_client(alphabet)
    whole = client.chat.completions.create(**ASK, logprobs=True, top_logprobs=2).choices[0].logprobs.content
    assert [entry.token for entry in whole] == list("bcdef")
    assert all(len(entry.top_logprobs) == 2 and abs(entry.logprob) < 0.01 for entry in whole)
    assert bytes(whole[0].bytes) == b"b"
    streamed = [entry for chunk in client.chat.completions.create(**ASK, logprobs=True, stream=True)
                for choice in chunk.choices if choice.logprobs for entry in choice.logprobs.content]
    assert [entry.token for entry in streamed] == list("bcdef") and streamed[0].top_logprobs == []


def test_stop_as_string_and_list(alphabet):
    client = openai_client(alphabet)
    for stop in ("e", ["q", "e"]):
        choice = client.chat.completions.create(**{**ASK, "max_tokens": 20}, stop=stop).choices[0]
        assert (choice.message.content, choice.finish_reason) == ("bcd", "stop")


def test_logit_bias_changes_the_answer(alphabet):
    client = openai_client(alphabet)
    banned = client.chat.completions.create(**ASK, logit_bias={str(token_id(alphabet, "b")): -100})
    assert not banned.choices[0].message.content.startswith("b")
    forced = client.chat.completions.create(**{**ASK, "max_tokens": 3}, logit_bias={str(token_id(alphabet, "q")): 100})
    assert forced.choices[0].message.content == "qqq"


def test_seed_and_penalties(real):
    client = openai_client(real)
    body = {**REAL, "temperature": 1.2, "top_p": 0.9, "seed": 11, "presence_penalty": 0.5, "frequency_penalty": 0.5}
    texts = [client.chat.completions.create(**body).choices[0].message.content for _ in range(2)]
    assert texts[0] == texts[1]


def test_tool_calls_with_and_without_stream(calling):
    client = openai_client(calling)
    body = {"model": "chain", "max_tokens": 64, "tools": [WEATHER], "tool_choice": "auto",
            "messages": [{"role": "developer", "content": "x"}, {"role": "user", "content": "Oslo?"}]}
    with client.chat.completions.stream(**body) as stream:
        streamed = stream.get_final_completion()
    for completion in (client.chat.completions.create(**body), streamed):
        choice = completion.choices[0]
        (call,) = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls" and choice.message.content.strip() == "Let me see."
        assert call.type == "function" and call.function.name == "get_weather"
        assert json.loads(call.function.arguments) == {"city": "Oslo", "days": 2}
    chunks = client.chat.completions.create(**body, stream=True)
    deltas = [call for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or []]
    assert deltas[0].id and all(delta.id is None for delta in deltas[1:])
    assert all(delta.function.name is None for delta in deltas[1:])
    assert "".join(delta.function.arguments or "" for delta in deltas)


def test_tool_messages_are_taken(real):
    messages = [{"role": "user", "content": "The weather in Oslo?"},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "call_1", "type": "function",
                     "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}]},
                {"role": "tool", "tool_call_id": "call_1", "content": "rain"}]
    assert openai_client(real).chat.completions.create(**{**REAL, "messages": messages}, tools=[WEATHER]).choices


def test_completions(alphabet):
    client = openai_client(alphabet)
    completion = client.completions.create(model="chain", prompt="a", max_tokens=4, logprobs=1)
    assert (completion.object, completion.choices[0].text) == ("text_completion", "bcde")
    assert completion.choices[0].logprobs.tokens == list("bcde")
    several = client.completions.create(model="chain", prompt=["a", "m"], max_tokens=2, n=2)
    assert [choice.text for choice in several.choices] == ["bc", "bc", "no", "no"]
    ids = client.completions.create(model="chain", prompt=[token_id(alphabet, "m")], max_tokens=2, echo=True)
    assert ids.choices[0].text == "mno"
    # The vendor's own streams have finish_reason null, which its strict client does not take.
    loose = openai.OpenAI(base_url=alphabet.url + "/v1", api_key="none needed")
    chunks = loose.completions.create(model="chain", prompt="a", max_tokens=4, stream=True)
    assert "".join(chunk.choices[0].text for chunk in chunks) == "bcde"


def test_models(real):
    client = openai_client(real)
    assert [model.id for model in client.models.list()] == ["smollm2", "second", "third"]
    model = client.models.retrieve("second")
    assert (model.object, model.owned_by) == ("model", "cicada") and model.created > 0


@pytest.mark.parametrize("change, cls, code", [
    ({"max_tokens": -1}, openai.BadRequestError, None),
    ({"messages": [{"role": "user", "content": "a" * 5000}]}, openai.BadRequestError, "context_length_exceeded"),
    ({"model": "other"}, openai.NotFoundError, "model_not_found"),
    ({"response_format": {"type": "json_object"}}, openai.BadRequestError, None),
    ({"tool_choice": "required", "tools": [WEATHER]}, openai.BadRequestError, None),
])
def test_errors_are_of_their_class(alphabet, change, cls, code):
    for stream in (False, True):
        with pytest.raises(cls) as caught:
            openai_client(alphabet).chat.completions.create(**{**ASK, **change}, stream=stream)
        assert caught.value.code == code and caught.value.request_id.startswith("req_")
        assert caught.value.param == next(iter(change)) or caught.value.param.startswith(next(iter(change)))


def test_what_is_not_there_is_404_in_shape(alphabet):
    client = openai_client(alphabet)
    for call in (lambda: client.embeddings.create(model="chain", input="a"), client.batches.list,
                 lambda: client.responses.create(model="chain", input="a")):
        with pytest.raises(openai.NotFoundError) as caught:
            call()
        assert caught.value.type == "not_found_error" and caught.value.request_id.startswith("req_")


def test_async_clients_run_beside_each_other(real):
    async def every():
        async with openai_client(real, openai.AsyncOpenAI) as client:
            async def streamed():
                return [chunk async for chunk in await client.chat.completions.create(**REAL, stream=True)]
            return await asyncio.gather(*[streamed() for _ in range(3)],
                                        *[client.chat.completions.create(**REAL) for _ in range(3)])

    assert all(asyncio.run(every()))


def test_threads_share_a_client(alphabet):
    client = openai_client(alphabet)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = pool.map(lambda _: client.chat.completions.create(**ASK).choices[0].message.content, range(32))
        assert list(texts) == ["bcdef"] * 32
