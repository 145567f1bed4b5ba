"""What clients ask for: JSON of OpenAI's completions and chats, judged field by field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from nacre.base.excerpt import safe
from nacre.llm.sampling import Sampling

_MOST_TOKENS = 1 << 20
_MOST_SEED = (1 << 63) - 1
_MOST_STOPS, _MOST_MESSAGES = 4, 1000
_DEFAULT_TOKENS = 16  # of a completion, as OpenAI has it; a chat goes on to its end
# What would change an answer and is not done, with the values that ask for nothing.
_UNSUPPORTED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "n": (1,), "best_of": (1,), "echo": (False,), "suffix": ("",), "logprobs": (False,),
        "top_logprobs": (0,), "logit_bias": ({},), "presence_penalty": (0,),
        "frequency_penalty": (0,), "tools": ([],), "functions": ([],),
        "response_format": ({"type": "text"},),
    }
)  # fmt: skip


class RequestProblem(Exception):  # noqa: N818 - carries an answer, not a failure of ours
    """Why a request is refused: a status of HTTP, a code, and the field that is to blame."""

    def __init__(
        self,
        message: str,
        code: str = "invalid_value",
        parameter: str | None = None,
        status: HTTPStatus = HTTPStatus.BAD_REQUEST,
    ) -> None:
        super().__init__(message)
        self.message, self.code, self.parameter, self.status = message, code, parameter, status


@dataclass(frozen=True, kw_only=True)
class GenerationRequest:
    """How a text is to go on."""

    max_tokens: int | None  # None: to its end
    sampling: Sampling
    stops: tuple[str, ...]
    is_streamed: bool
    wants_usage: bool  # at the end of a stream


@dataclass(frozen=True, kw_only=True)
class CompletionRequest(GenerationRequest):
    """A text that goes on."""

    prompt: str


@dataclass(frozen=True, kw_only=True)
class ChatRequest(GenerationRequest):
    """A conversation that is answered."""

    messages: tuple[Mapping[str, str], ...]


def read_completion(body: bytes) -> CompletionRequest:
    """A request for a completion; RequestProblem says what is wrong with it."""
    parsed = _object(body)
    prompt = parsed.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise RequestProblem("`prompt` must be one text", parameter="prompt")
    tokens = _count(parsed, "max_tokens")
    return CompletionRequest(
        prompt=prompt, **_common_options(parsed, _DEFAULT_TOKENS if tokens is None else tokens)
    )


def read_chat(body: bytes) -> ChatRequest:
    """A request for an answer; RequestProblem says what is wrong with it."""
    parsed = _object(body)
    messages = parsed.get("messages")
    if not isinstance(messages, list) or not 1 <= len(messages) <= _MOST_MESSAGES:
        message = f"`messages` must be a list of 1 to {_MOST_MESSAGES:,} messages"
        raise RequestProblem(message, parameter="messages")
    tokens = _count(parsed, "max_completion_tokens")
    tokens = _count(parsed, "max_tokens") if tokens is None else tokens
    return ChatRequest(messages=tuple(map(_message, messages)), **_common_options(parsed, tokens))


def _object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body.decode())
    except (ValueError, RecursionError) as error:
        message = f"the body is no JSON in UTF-8: {safe(str(error))[:200]}"
        raise RequestProblem(message, "invalid_json") from None
    if not isinstance(parsed, dict):
        raise RequestProblem("the body must be an object", "invalid_json")
    for name, nothing in _UNSUPPORTED.items():
        value = parsed.get(name)
        if value is not None and value not in nothing:
            raise RequestProblem(f"`{name}` is not supported", "unsupported_value", name)
    return parsed


def _message(parsed: object) -> Mapping[str, str]:
    if not isinstance(parsed, dict) or not isinstance(parsed.get("role"), str):
        raise RequestProblem("a message must have a `role`", parameter="messages")
    content = parsed.get("content")
    if isinstance(content, list):
        content = "".join(map(_part, content))
    if not isinstance(content, str):
        raise RequestProblem("a message must have a text as `content`", parameter="messages")
    return {"role": parsed["role"], "content": content}


def _part(parsed: object) -> str:
    text = parsed.get("text") if isinstance(parsed, dict) and parsed.get("type") == "text" else None
    if not isinstance(text, str):
        raise RequestProblem("contents other than texts are not read", parameter="messages")
    return text


def _common_options(parsed: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
    """What both kinds of requests have."""
    options = parsed.get("stream_options")
    usage = options.get("include_usage", False) if isinstance(options, dict) else False
    seed = _count(parsed, "seed", 0, _MOST_SEED)
    return {
        "max_tokens": max_tokens,
        "sampling": Sampling(
            temperature=_number(parsed, "temperature", 0.0, 2.0),
            top_p=_number(parsed, "top_p", 1e-6, 1.0),
            seed=0 if seed is None else seed,
        ),
        "stops": _stops(parsed),
        "is_streamed": _flag(parsed, "stream"),
        "wants_usage": usage is True,
    }


def _count(
    parsed: Mapping[str, Any], name: str, least: int = 1, most: int = _MOST_TOKENS
) -> int | None:
    value = parsed.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value <= most:
        message = f"`{name}` must be a whole number from {least:,} to {most:,}"
        raise RequestProblem(message, parameter=name)
    return value


def _number(parsed: Mapping[str, Any], name: str, least: float, most: float) -> float:
    """A number, 1 where there is none."""
    value = parsed.get(name)
    if value is None:
        return 1.0
    if type(value) not in (int, float) or not least <= value <= most:  # as NaN is not
        raise RequestProblem(f"`{name}` must be from {least:g} to {most:g}", parameter=name)
    return float(value)


def _flag(parsed: Mapping[str, Any], name: str) -> bool:
    value = parsed.get(name)
    if value not in (None, True, False):
        raise RequestProblem(f"`{name}` must be true or false", parameter=name)
    return bool(value)


def _stops(parsed: Mapping[str, Any]) -> tuple[str, ...]:
    value = parsed.get("stop")
    stops = [] if value is None else [value] if isinstance(value, str) else value
    is_list = isinstance(stops, list) and len(stops) <= _MOST_STOPS
    if not is_list or not all(isinstance(stop, str) and stop for stop in stops):
        raise RequestProblem(f"`stop` must be up to {_MOST_STOPS} texts", parameter="stop")
    return tuple(stops)
