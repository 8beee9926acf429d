"""Servers that the tests share, and strict clients of both vendors."""
import os

import anthropic
import openai
import pytest

from live_server import CALL, LiveServer, THINKING_TEMPLATE, THOUGHT

# What the clients read from the environment must not change a result.
for name in list(os.environ):
    if name.startswith(("ANTHROPIC_", "OPENAI_")):
        del os.environ[name]


def anthropic_client(server, cls=anthropic.Anthropic, **options):
    return cls(base_url=server.url, api_key="none needed", _strict_response_validation=True, **options)


def openai_client(server, cls=openai.OpenAI, **options):
    return cls(base_url=server.url + "/v1", api_key="none needed", _strict_response_validation=True, **options)


@pytest.fixture(scope="session")
def real():
    with LiveServer("--alias", "smollm2", "--alias", "second", "--alias", "third", "--alias", "claude-*",
                    model="smollm2") as server:
        yield server


@pytest.fixture(scope="session")
def alphabet():
    with LiveServer() as server:
        yield server


@pytest.fixture(scope="session")
def calling():
    with LiveServer(pieces=CALL) as server:
        yield server


@pytest.fixture(scope="session")
def thinking():
    with LiveServer(pieces=THOUGHT, template=THINKING_TEMPLATE) as server:
        yield server
