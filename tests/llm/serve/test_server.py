"""The server, asked by a real client: texts, streams, and what is refused with a code."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from nacre.llm.chat import LanguageModel
from nacre.llm.gguf.file import parse_gguf
from nacre.llm.model.runner import Runner
from nacre.llm.sampling import Sampling
from nacre.llm.serve import server as server_module
from nacre.llm.serve.model import ServedModel
from nacre.llm.serve.server import LlmServer
from tests.llm.gguf_bytes import TEXT, Pair
from tests.llm.letters import LETTER_KEYS
from tests.llm.reference import Sizes, llama_bytes

TEMPLATE = "{% for m in messages %}<s>{{ m.content }}{% endfor %}"
SIZES = Sizes(context=64)
PAIRS = [*LETTER_KEYS, Pair("tokenizer.chat_template", TEXT, TEMPLATE)]
MODEL = LanguageModel.from_gguf(parse_gguf(llama_bytes(SIZES, pairs=PAIRS), "letters.gguf"))
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
Answer = tuple[int, Any]


def served(model: LanguageModel) -> ServedModel:
    runner = model.decoder.runner(40, 4)
    assert isinstance(runner, Runner)
    return ServedModel("letters", model.text, runner)


@pytest.fixture(scope="module")
def server() -> Iterator[LlmServer]:
    with LlmServer(served(MODEL)) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def request(
    server: LlmServer, method: str, path: str, body: bytes = b"", /, **headers: str
) -> tuple[int, bytes]:
    client = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    client.request(method, path, body, named)
    answer = client.getresponse()
    found = answer.status, answer.read()
    client.close()
    return found


def ask(server: LlmServer, path: str, **said: object) -> Answer:
    body = json.dumps(said).encode()
    status, raw = request(server, "POST", path, body, Content_Type="application/json")
    return status, json.loads(raw)


def events(server: LlmServer, path: str, **said: object) -> list[Any]:
    body = json.dumps({**said, "stream": True}).encode()
    status, raw = request(server, "POST", path, body, Content_Type="application/json")
    assert status == 200
    lines = [part.removeprefix("data: ") for part in raw.decode().split("\n\n") if part]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def expected(ids: list[int], count: int) -> str:
    pieces = MODEL.generate(ids, max_tokens=count, context=40, sampling=Sampling())
    return "".join(pieces)


def test_a_completion_goes_on_as_the_model_says(server: LlmServer) -> None:
    status, found = ask(server, COMPLETIONS, prompt="hello", max_tokens=7, temperature=0)
    assert status == 200
    (choice,) = found["choices"]
    ids = MODEL.text.tokenizer.encode("hello")
    assert choice["text"] == expected(ids, 7)
    assert choice["finish_reason"] in ("length", "stop")
    assert found["object"] == "text_completion"
    assert found["usage"]["prompt_tokens"] == 5
    assert found["usage"]["total_tokens"] == 5 + found["usage"]["completion_tokens"]


def test_a_chat_is_answered_by_the_template(server: LlmServer) -> None:
    messages = [
        {"role": "system", "content": "be"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    ]
    status, found = ask(server, CHAT, messages=messages, max_completion_tokens=6, temperature=0)
    assert status == 200
    (choice,) = found["choices"]
    ids = MODEL.text.chat_ids(
        [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    )
    assert choice["message"] == {"role": "assistant", "content": expected(ids, 6)}
    assert found["object"] == "chat.completion"


def test_a_stream_brings_the_same_text_in_pieces(server: LlmServer) -> None:
    how = {"prompt": "hello", "max_tokens": 7, "temperature": 0}
    whole = ask(server, COMPLETIONS, **how)[1]
    found = events(server, COMPLETIONS, **how, stream_options={"include_usage": True})
    assert "".join(e["choices"][0]["text"] for e in found[:-1]) == whole["choices"][0]["text"]
    assert found[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"]
    assert (found[-1]["choices"], found[-1]["usage"]) == ([], whole["usage"])


def test_a_streamed_chat_begins_with_the_role(server: LlmServer) -> None:
    messages = [{"role": "user", "content": "hi"}]
    first, *rest = events(server, CHAT, messages=messages, max_tokens=5, temperature=0)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in rest)
    ids = MODEL.text.chat_ids(messages)
    assert text == expected(ids, 5)
    assert {event["object"] for event in rest} == {"chat.completion.chunk"}


def test_a_text_ends_before_a_stop(server: LlmServer) -> None:
    how = {"prompt": "hello", "max_tokens": 8, "temperature": 0}
    text = ask(server, COMPLETIONS, **how)[1]["choices"][0]["text"]
    stop = text[2:4]
    (choice,) = ask(server, COMPLETIONS, **how, stop=[stop])[1]["choices"]
    assert choice["text"] == text[: text.index(stop)]
    assert choice["finish_reason"] == "stop"


def test_a_seed_gives_the_same_text(server: LlmServer) -> None:
    how = {"prompt": "a", "max_tokens": 9, "temperature": 1.5}
    texts = [
        ask(server, COMPLETIONS, **how, seed=seed)[1]["choices"][0]["text"] for seed in (4, 4, 5)
    ]
    assert texts[0] == texts[1] != texts[2]


def test_models_are_listed(server: LlmServer) -> None:
    status, raw = request(server, "GET", "/v1/models")
    assert status == 200
    assert [model["id"] for model in json.loads(raw)["data"]] == ["letters"]


@pytest.mark.parametrize(
    ("said", "code", "parameter"),
    [
        ({}, "invalid_value", "prompt"),
        ({"prompt": 3}, "invalid_value", "prompt"),
        ({"prompt": ["a", "b"]}, "invalid_value", "prompt"),
        ({"prompt": "a" * 50}, "LLM07", None),
        ({"prompt": "a", "n": 2}, "unsupported_value", "n"),
        ({"prompt": "a", "echo": True}, "unsupported_value", "echo"),
        ({"prompt": "a", "logprobs": 3}, "unsupported_value", "logprobs"),
        ({"prompt": "a", "max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"prompt": "a", "max_tokens": 1 << 40}, "invalid_value", "max_tokens"),
        ({"prompt": "a", "max_tokens": "9"}, "invalid_value", "max_tokens"),
        ({"prompt": "a", "temperature": -1}, "invalid_value", "temperature"),
        ({"prompt": "a", "temperature": float("nan")}, "invalid_value", "temperature"),
        ({"prompt": "a", "temperature": 10**400}, "invalid_value", "temperature"),
        ({"prompt": "a", "top_p": 0}, "invalid_value", "top_p"),
        ({"prompt": "a", "seed": -1}, "invalid_value", "seed"),
        ({"prompt": "a", "stop": [""]}, "invalid_value", "stop"),
        ({"prompt": "a", "stop": 7}, "invalid_value", "stop"),
        ({"prompt": "a", "stream": "yes"}, "invalid_value", "stream"),
    ],
)
def test_what_cannot_be_asked_has_a_code(
    server: LlmServer, said: dict[str, object], code: str, parameter: str | None
) -> None:
    status, found = ask(server, COMPLETIONS, **said)
    error = found["error"]
    assert (status, error["code"], error["param"]) == (400, code, parameter)
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "messages",
    [None, [], "hi", [3], [{"content": "a"}], [{"role": "user"}], [{"role": "user", "content": 1}],
     [{"role": "user", "content": [{"type": "image_url"}]}]],
)  # fmt: skip
def test_messages_that_are_none_are_refused(server: LlmServer, messages: object) -> None:
    status, found = ask(server, CHAT, messages=messages)
    assert (status, found["error"]["param"]) == (400, "messages")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"a": 1e999999}']
)
def test_bodies_that_are_no_requests_are_refused(server: LlmServer, body: bytes) -> None:
    status, raw = request(server, "POST", CHAT, body, Content_Type="application/json")
    assert status == 400
    assert json.loads(raw)["error"]["code"] in ("invalid_json", "invalid_value")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/", {}, 404),
        ("GET", "/v1/../etc/passwd", {}, 404),
        ("GET", CHAT, {}, 405),
        ("POST", "/v1/models", {}, 405),
        ("PUT", CHAT, {}, 501),
        ("POST", CHAT, {"Content_Type": "text/plain"}, 415),
        ("POST", CHAT, {"Content_Type": "application/json", "Content_Length": "-1"}, 411),
        ("POST", CHAT, {"Content_Type": "application/json", "Content_Length": "9" * 30}, 413),
        ("POST", CHAT, {"Content_Type": "application/json", "Content_Length": "1048577"}, 413),
        ("GET", "/v1/models", {"Host": "evil.example"}, 403),
        ("GET", "/v1/models", {"Host": "evil.example:8080"}, 403),
        ("GET", "/v1/models", {"Host": "localhost:8080"}, 200),
    ],
)
def test_requests_of_strangers_have_an_answer(
    server: LlmServer, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    found, raw = request(server, method, path, b"", **headers)
    assert found == status
    assert json.loads(raw)["error"]["code"] if status != 200 else True


@pytest.mark.parametrize("sent", [b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"])
def test_what_is_no_http_is_refused(server: LlmServer, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert b'"error"' in answer


def test_a_body_that_ends_early_is_refused(server: LlmServer) -> None:
    head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as raw:
        raw.sendall(head + b"Content-Length: 100\r\n\r\n{}")
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    assert b'"code": "length"' in answer


def test_a_client_that_leaves_a_stream_frees_the_model(server: LlmServer) -> None:
    body = json.dumps({"prompt": "a", "max_tokens": 30, "stream": True}).encode()
    head = f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for _ in range(3):
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=20) as raw:
            raw.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    status, _ = ask(server, COMPLETIONS, prompt="a", max_tokens=2)
    assert status == 200


def test_threads_get_their_own_texts(server: LlmServer) -> None:
    prompts = ["abc", "hello", "to be", "zz"]
    found: dict[str, str] = {}

    def one(prompt: str) -> None:
        answer = ask(server, COMPLETIONS, prompt=prompt, max_tokens=6, temperature=0)[1]
        found[prompt] = answer["choices"][0]["text"]

    threads = [Thread(target=one, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {p: expected(MODEL.text.tokenizer.encode(p), 6) for p in prompts}


def test_a_model_without_a_template_does_not_chat() -> None:
    plain = LanguageModel.from_gguf(parse_gguf(llama_bytes(SIZES, pairs=LETTER_KEYS), "m.gguf"))
    with LlmServer(served(plain)) as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        status, found = ask(made, CHAT, messages=[{"role": "user", "content": "hi"}])
        made.shutdown()
        thread.join()
    assert (status, found["error"]["code"]) == (400, "no_chat_template")


def test_a_fault_of_ours_is_told_without_its_insides(
    server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "read_chat", lambda body: 1 / 0)
    status, found = ask(server, CHAT, messages=[{"role": "user", "content": "hi"}])
    assert (status, found["error"]["type"]) == (500, "server_error")
    assert "division" not in json.dumps(found)
