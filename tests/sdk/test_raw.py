"""What the newest clients no longer send: older header forms, and refusals outside of the endpoints."""
import json
import shutil
import socket
import subprocess

import pytest

from live_server import LiveServer

ASK = {"model": "chain", "max_tokens": 3, "messages": [{"role": "user", "content": "a"}]}


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21", "2023-01-01", None])
@pytest.mark.parametrize("key", [{"x-api-key": "s3cret"}, {"authorization": "Bearer s3cret"},
                                 {"x-api-key": "s3cret", "authorization": "Bearer s3cret"}])
def test_both_generations_of_headers_are_served(keyed, key, version):
    headers = {**key, **({"anthropic-version": version} if version else {}), "anthropic-beta": "a-2024-01-01,b"}
    for path in ("/v1/messages", "/v1/messages?beta=true"):
        status, got, body = keyed.request("POST", path, {**ASK, "temperature": 0.0, "top_k": 5}, headers)
        assert status == 200, body
        assert json.loads(body)["content"] == [{"type": "text", "text": "bcd"}]
        assert got["request-id"].startswith("req_") and got["x-request-id"] == got["request-id"]
        assert "anthropic-ratelimit-requests-remaining" in got


@pytest.fixture(scope="module")
def keyed():
    with LiveServer("--api-key", "s3cret") as server:
        yield server


@pytest.mark.parametrize("method, path, body, headers, status, kind", [
    ("POST", "/v1/messages", ASK, {}, 401, "authentication_error"),
    ("GET", "/nowhere", None, {}, 401, "authentication_error"),
    ("GET", "/nowhere", None, {"x-api-key": "s3cret"}, 404, "not_found_error"),
    ("GET", "/v1/messages", None, {"x-api-key": "s3cret"}, 405, "invalid_request_error"),
    ("DELETE", "/v1/models", None, {"x-api-key": "s3cret"}, 405, "invalid_request_error"),
    ("POST", "/v1/messages", b"{", {"x-api-key": "s3cret"}, 400, "invalid_request_error"),
    ("POST", "/v1/messages", b"", {"x-api-key": "s3cret"}, 400, "invalid_request_error"),
    ("POST", "/v1/messages", b"[" * 5000, {"x-api-key": "s3cret"}, 400, "invalid_request_error"),
    ("POST", "/v1/messages/batches", {}, {"x-api-key": "s3cret"}, 404, "not_found_error"),
    ("POST", "/v1/embeddings", {}, {"x-api-key": "s3cret"}, 404, "not_found_error"),
])
def test_refusals_have_the_envelope(keyed, method, path, body, headers, status, kind):
    got, reply, data = keyed.request(method, path, body, headers)
    error = json.loads(data)
    assert got == status and error["type"] == "error" and error["error"]["type"] == kind
    assert error["request_id"] == reply["request-id"] == reply["x-request-id"]
    assert set(error["error"]) >= {"type", "message", "code", "param"}


def test_too_large_a_body_is_refused_before_it_is_read(keyed):
    host, port = keyed.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-api-key: s3cret\r\n"
                           b"content-length: 9999999999\r\n\r\n")
        reply = connection.recv(65536).decode()
    assert reply.startswith("HTTP/1.1 413 ") and "request-id: req_" in reply and "request_too_large" in reply


def test_metrics_satisfy_promtool_but_for_the_colon(keyed):
    if not shutil.which("promtool"):
        pytest.skip("no promtool here (Debian package prometheus)")
    keyed.request("POST", "/v1/messages", ASK, {"x-api-key": "s3cret"})
    text = keyed.request("GET", "/metrics")[2]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    complaints = (done.stdout + done.stderr).decode().splitlines()
    assert [line for line in complaints if line and not line.endswith("should not contain ':'")] == []
    assert any(line.startswith("vllm:") for line in complaints), "promtool did not look"
