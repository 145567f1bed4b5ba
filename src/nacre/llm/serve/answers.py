"""Answers in the forms that clients of OpenAI's interface read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from nacre.llm.serve.requests import RequestProblem

Kind = Literal["completion", "chat"]
Json = dict[str, object]


@dataclass(frozen=True)
class AnswerForm:
    """The parts of an answer that stay the same from piece to piece."""

    kind: Kind
    id: str
    created: int  # seconds since 1970
    model: str

    def whole(self, text: str, finish: str, usage: Mapping[str, int]) -> Json:
        """All of it at once."""
        if self.kind == "chat":
            message = {"role": "assistant", "content": text}
            choice: Json = {"index": 0, "message": message, "finish_reason": finish}
            name = "chat.completion"
        else:
            choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
            name = "text_completion"
        return {**self._head(name), "choices": [choice], "usage": dict(usage)}

    def first(self) -> Json | None:
        """What a stream begins with."""
        if self.kind == "completion":
            return None
        return self._chunk({"delta": {"role": "assistant", "content": ""}}, None)

    def piece(self, text: str) -> Json:
        """A piece of the text."""
        given: Json = {"delta": {"content": text}} if self.kind == "chat" else {"text": text}
        return self._chunk(given, None)

    def last(self, finish: str) -> Json:
        """Why there is no more."""
        return self._chunk({"delta": {}} if self.kind == "chat" else {"text": ""}, finish)

    def usage(self, usage: Mapping[str, int]) -> Json:
        """What it took, behind all pieces."""
        return {**self._head(self._chunk_name), "choices": [], "usage": dict(usage)}

    @property
    def _chunk_name(self) -> str:
        return "chat.completion.chunk" if self.kind == "chat" else "text_completion"

    def _chunk(self, given: Json, finish: str | None) -> Json:
        choice = {"index": 0, **given, "finish_reason": finish}
        return {**self._head(self._chunk_name), "choices": [choice]}

    def _head(self, name: str) -> Json:
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}


def problem_json(problem: RequestProblem) -> Json:
    """Why a request is refused."""
    is_ours = problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    error: Json = {
        "message": problem.message,
        "type": "server_error" if is_ours else "invalid_request_error",
        "param": problem.parameter,
        "code": problem.code,
    }
    return {"error": error}


def usage_of(prompt: int, completion: int) -> dict[str, int]:
    """Tokens that were read and written."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
