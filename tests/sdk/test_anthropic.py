"""The vendor's Python client against a live server, with its strict validation of replies on."""
import asyncio
import concurrent.futures
import time

import anthropic
import pytest

from conftest import anthropic_client
from live_server import LiveServer

ASK = {"model": "chain", "max_tokens": 5, "messages": [{"role": "user", "content": "a"}]}
REAL = {"model": "smollm2", "max_tokens": 12, "messages": [{"role": "user", "content": "Name a colour."}]}
WEATHER = {"name": "get_weather", "description": "The weather of a city.",
           "input_schema": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}


def test_create_gives_exact_text(alphabet):
    message = anthropic_client(alphabet).messages.create(**ASK)
    assert message.content[0].text == "bcdef"
    assert (message.role, message.type, message.model) == ("assistant", "message", "chain")
    assert message.stop_reason == "max_tokens" and message.stop_sequence is None
    assert message.usage.output_tokens == 5
    assert message._request_id.startswith("req_") and message.id.startswith("msg_")


def test_stream_helper_joins_the_same_text(alphabet):
    with anthropic_client(alphabet).messages.stream(**ASK) as stream:
        texts = list(stream.text_stream)
        final = stream.get_final_message()
    assert texts == list("bcdef")
    assert final.content[0].text == "bcdef"
    assert final.usage.output_tokens == 5 and final.stop_reason == "max_tokens"


def test_stream_helper_without_reading_gives_final_text(real):
    with anthropic_client(real).messages.stream(**REAL) as stream:
        assert stream.get_final_text().strip()


def test_raw_events_come_in_order(alphabet):
    events = [event.type for event in anthropic_client(alphabet).messages.create(**ASK, stream=True)]
    assert events == ["message_start", "content_block_start", *["content_block_delta"] * 5, "content_block_stop",
                      "message_delta", "message_stop"]


def test_with_raw_and_streaming_response(alphabet):
    client = anthropic_client(alphabet)
    raw = client.messages.with_raw_response.create(**ASK)
    assert raw.headers["request-id"].startswith("req_") and raw.parse().content[0].text == "bcdef"
    with client.messages.with_streaming_response.create(**ASK) as response:
        assert response.headers["content-type"] == "application/json"
        assert response.parse().content[0].text == "bcdef"
    with client.messages.with_streaming_response.create(**ASK, stream=True) as response:
        lines = list(response.iter_lines())
    assert lines[0] == "event: message_start" and 'data: {"type":"message_stop"}' in lines


def test_count_tokens_equals_later_usage(real):
    client = anthropic_client(real)
    body = {"model": "smollm2", "system": "Be short.", "messages": REAL["messages"], "tools": [WEATHER]}
    counted = client.messages.count_tokens(**body).input_tokens
    for _ in range(2):  # the second time part of it is read from the cache
        usage = client.messages.create(**body, max_tokens=1).usage
        assert usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens == counted


def test_cache_marks_show_in_usage(real):
    client = anthropic_client(real)
    text = "The quick brown fox jumps over the lazy dog. " * 40
    body = {"model": "smollm2", "max_tokens": 1, "messages": [{"role": "user", "content": "Well?"}],
            "system": [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]}
    first = client.messages.create(**body).usage
    second = client.messages.create(**body).usage
    assert first.cache_creation_input_tokens >= 256 and first.cache_read_input_tokens < 64
    assert first.cache_creation.ephemeral_1h_input_tokens == first.cache_creation_input_tokens
    assert second.cache_read_input_tokens >= first.cache_creation_input_tokens


def test_system_blocks_and_system_roles_are_read(alphabet):
    client = anthropic_client(alphabet)
    plain = client.messages.count_tokens(model="chain", messages=ASK["messages"]).input_tokens
    for system in ("xyz", [{"type": "text", "text": "x"}, {"type": "text", "text": "yz"}]):
        more = client.messages.count_tokens(model="chain", messages=ASK["messages"], system=system).input_tokens
        assert more > plain
    inside = [{"role": "user", "content": "x"}, {"role": "system", "content": "y"}, *ASK["messages"]]
    assert client.messages.create(**{**ASK, "messages": inside}).content[0].text == "bcdef"


def test_stop_sequence_is_named_and_left_out(alphabet):
    client = anthropic_client(alphabet)
    message = client.messages.create(**{**ASK, "max_tokens": 20}, stop_sequences=["zzz", "fg"])
    assert message.content[0].text == "bcde"
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "fg")
    with client.messages.stream(**{**ASK, "max_tokens": 20}, stop_sequences=["fg"]) as stream:
        final = stream.get_final_message()
    assert (final.content[0].text, final.stop_reason, final.stop_sequence) == ("bcde", "stop_sequence", "fg")


def test_prefill_is_continued_and_not_repeated(alphabet):
    messages = [*ASK["messages"], {"role": "assistant", "content": "xyzabc"}]
    assert anthropic_client(alphabet).messages.create(**{**ASK, "messages": messages}).content[0].text == "defgh"


def test_tool_call_is_whole_with_and_without_stream(calling):
    client = anthropic_client(calling)
    body = {"model": "chain", "max_tokens": 64, "tools": [WEATHER], "tool_choice": {"type": "auto"},
            "messages": [{"role": "user", "content": "Oslo?"}]}
    with client.messages.stream(**body) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    assert "input_json" in kinds
    for message in (client.messages.create(**body), streamed):
        text, call = message.content
        assert text.text.strip() == "Let me see."
        assert (call.type, call.name, call.input) == ("tool_use", "get_weather", {"city": "Oslo", "days": 2})
        assert call.id.startswith("toolu_") and message.stop_reason == "tool_use"


def test_tool_results_are_taken(real):
    client = anthropic_client(real)
    messages = [
        {"role": "user", "content": "The weather in Oslo?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "get_weather",
                                           "input": {"city": "Oslo"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                                      "content": [{"type": "text", "text": "rain"}]}]}]
    assert client.messages.create(model="smollm2", max_tokens=4, messages=messages, tools=[WEATHER]).content


def test_tool_choice_none_gives_text_and_forced_is_refused(calling):
    client = anthropic_client(calling)
    body = {"model": "chain", "max_tokens": 64, "tools": [WEATHER], "messages": [{"role": "user", "content": "x"}]}
    message = client.messages.create(**body, tool_choice={"type": "none"})
    assert [block.type for block in message.content] == ["text"] and message.stop_reason == "end_turn"
    with pytest.raises(anthropic.BadRequestError, match="tool_choice"):
        client.messages.create(**body, tool_choice={"type": "any"})


def test_thinking_is_accepted_and_its_blocks_are_whole(thinking, real):
    client = anthropic_client(thinking)
    body = {"model": "chain", "max_tokens": 2048, "messages": [{"role": "user", "content": "x"}],
            "thinking": {"type": "enabled", "budget_tokens": 1024}}
    with client.messages.stream(**body) as stream:
        streamed = stream.get_final_message()
    for message in (client.messages.create(**body), streamed):
        thought, text = message.content
        assert thought.type == "thinking" and thought.thinking.strip() == "deep water"
        assert isinstance(thought.signature, str) and text.text == "fine"
    for kind in ({"type": "adaptive"}, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}):
        assert anthropic_client(real).messages.create(**REAL, thinking=kind).content


def test_sampling_fields_arrive_as_extra_body(real):
    client = anthropic_client(real)
    greedy = [client.messages.create(**REAL, extra_body={"temperature": 0}).content[0].text for _ in range(2)]
    assert greedy[0] == greedy[1]
    seeded = [client.messages.create(**REAL, extra_body={"temperature": 1.5, "top_k": 50, "top_p": 0.95, "seed": 7})
              .content[0].text for _ in range(2)]
    assert seeded[0] == seeded[1]
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**REAL, extra_body={"temperature": "warm"})


@pytest.mark.parametrize("change, cls, kind", [
    ({"max_tokens": 0}, anthropic.BadRequestError, "invalid_request_error"),
    ({"messages": []}, anthropic.BadRequestError, "invalid_request_error"),
    ({"messages": [{"role": "robot", "content": "a"}]}, anthropic.BadRequestError, "invalid_request_error"),
    ({"messages": [{"role": "user", "content": "a" * 5000}]}, anthropic.BadRequestError, "invalid_request_error"),
    ({"model": "other"}, anthropic.NotFoundError, "not_found_error"),
])
def test_errors_are_of_their_class(alphabet, change, cls, kind):
    client = anthropic_client(alphabet)
    for stream in (False, True):
        with pytest.raises(cls) as caught:
            client.messages.create(**{**ASK, **change}, stream=stream)
        assert caught.value.type == kind
        assert caught.value.request_id.startswith("req_")
        assert caught.value.body["request_id"] == caught.value.request_id


def test_keys_are_asked_for_and_found_in_either_header():
    with LiveServer("--api-key", "s3cret") as server:
        def client(**options):
            return anthropic.Anthropic(base_url=server.url, _strict_response_validation=True, **options)
        assert client(api_key="s3cret").messages.create(**ASK).content[0].text == "bcdef"
        assert client(auth_token="s3cret").messages.create(**ASK).content[0].text == "bcdef"
        with pytest.raises(anthropic.AuthenticationError) as caught:
            client(api_key="wrong").messages.create(**ASK)
        assert caught.value.type == "authentication_error" and caught.value.request_id.startswith("req_")


def test_a_full_server_is_asked_again_when_it_said():
    long = {"model": "smollm2", "prompt": "Once", "max_tokens": 400, "ignore_eos": True, "stream": True}
    with LiveServer("--parallel", "1", "--max-queue", "0", "--alias", "smollm2", model="smollm2") as server:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            busy = pool.submit(server.request, "POST", "/v1/completions", long)
            time.sleep(0.3)
            with pytest.raises(anthropic.OverloadedError) as caught:
                anthropic_client(server, max_retries=0).messages.create(**REAL)
            assert caught.value.type == "overloaded_error" and caught.value.status_code == 529
            assert caught.value.response.headers["retry-after"] == "1"
            begin = time.monotonic()
            reply = anthropic_client(server, max_retries=60).messages.with_raw_response.create(**REAL)
            assert reply.retries_taken >= 1 and time.monotonic() - begin >= 1
            assert reply.parse().content
            assert busy.result()[0] == 200


def test_models_are_paged_and_found(real):
    client = anthropic_client(real)
    every = [model.id for model in client.models.list()]
    assert every == ["smollm2", "second", "third"]
    assert [model.id for model in client.models.list(limit=1)] == every  # three pages
    page = client.models.list(limit=2)
    assert page.has_more and (page.first_id, page.last_id) == ("smollm2", "second")
    assert [model.id for model in client.models.list(after_id="smollm2", before_id="third")] == ["second"]
    assert [model.id for model in client.models.list(before_id="third", limit=1)][0] == "second"
    model = client.models.retrieve("third")
    assert (model.id, model.type, model.lifecycle) == ("third", "model", "active") and model.max_input_tokens == 8192
    assert client.models.retrieve("claude-opus-5-5").id == "claude-opus-5-5"
    assert client.beta.models.retrieve("smollm2").id == "smollm2"
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("nothing")


def test_what_is_not_there_is_404_in_shape(alphabet):
    client = anthropic_client(alphabet)
    for call in (client.messages.batches.list, lambda: client.messages.batches.retrieve("msgbatch_1"),
                 lambda: client.messages.batches.create(requests=[{"custom_id": "1", "params": ASK}])):
        with pytest.raises(anthropic.NotFoundError) as caught:
            call()
        assert caught.value.type == "not_found_error" and caught.value.request_id.startswith("req_")


def test_tool_runner_falls_back_to_the_whole_history(calling):
    seen = []

    @anthropic.beta_tool
    def get_weather(city: str, days: int) -> str:
        """The weather of a city."""
        seen.append((city, days))
        return "rain"

    runner = anthropic_client(calling).beta.messages.tool_runner(
        model="chain", max_tokens=64, tools=[get_weather], max_iterations=2,
        messages=[{"role": "user", "content": "Oslo?"}])
    messages = list(runner)
    assert len(messages) == 2 and seen and seen[0] == ("Oslo", 2)


def test_async_clients_run_beside_each_other(real):
    async def ask(client, number):
        if number % 2:
            return (await client.messages.create(**REAL)).content[0].text
        async with client.messages.stream(**REAL) as stream:
            return await stream.get_final_text()

    async def every():
        async with anthropic_client(real, anthropic.AsyncAnthropic) as client:
            return await asyncio.gather(*[ask(client, number) for number in range(6)])

    assert all(asyncio.run(every()))


def test_threads_share_a_client(alphabet):
    client = anthropic_client(alphabet)

    def ask(number):
        if number % 2:
            return client.messages.create(**ASK).content[0].text
        with client.messages.stream(**ASK) as stream:
            return stream.get_final_text()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(32))) == ["bcdef"] * 32


def test_an_aborted_stream_leaves_the_server_idle(real):
    client = anthropic_client(real)
    with client.messages.stream(**{**REAL, "max_tokens": 2000}, extra_body={"temperature": 3}) as stream:
        next(iter(stream.text_stream))
    for _ in range(50):
        text = real.request("GET", "/metrics")[2].decode()
        line = next(line for line in text.splitlines() if line.startswith("vllm:num_requests_running{"))
        if line.endswith(" 0"):
            return
        time.sleep(0.1)
    pytest.fail(line)
