"""The model behind a server: one text at a time, the others wait for their turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from http import HTTPStatus
from threading import Lock

from nacre.base.diagnostics import InputError
from nacre.llm.chat import Generation, TextInterface, require_room
from nacre.llm.model.runner import Runner
from nacre.llm.serve.requests import ChatRequest, CompletionRequest, RequestProblem

_MOST_WAITING = 8
_TURN_SECONDS = 600.0


class ServedModel:
    """A model that answers requests of several threads one after the other."""

    def __init__(self, name: str, text: TextInterface, runner: Runner) -> None:
        self.name = name
        self._text, self._runner = text, runner
        self._turn, self._count = Lock(), Lock()
        self._waiting = 0

    @contextlib.contextmanager
    def generation(self, request: CompletionRequest | ChatRequest) -> Iterator[Generation]:
        """The text that goes on, for as long as the block lasts; RequestProblem refuses it."""
        ids = self._ids(request)
        with self._exclusive():
            self._runner.reset()
            most = self._runner.remaining if request.max_tokens is None else request.max_tokens
            yield Generation(self._text.tokenizer, self._runner, ids, most, request.sampling)

    def _ids(self, request: CompletionRequest | ChatRequest) -> list[int]:
        is_chat = isinstance(request, ChatRequest)
        if is_chat and self._text.template is None:
            message = "the model's file has no chat template: ask for completions"
            raise RequestProblem(message, "no_chat_template", "messages")
        try:
            if isinstance(request, ChatRequest):
                ids = self._text.chat_ids(request.messages)
            else:
                ids = self._text.tokenizer.encode(request.prompt) or self._text.beginning
            require_room(self._text.name, ids, self._runner.context)
        except InputError as error:
            raise refused(error) from None
        if not ids:
            raise RequestProblem("the prompt has no tokens", parameter="prompt")
        return ids

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        with self._count:
            if self._waiting >= _MOST_WAITING:
                raise _busy_problem()
            self._waiting += 1
        try:
            if not self._turn.acquire(timeout=_TURN_SECONDS):
                raise _busy_problem()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            with self._count:
                self._waiting -= 1


def refused(error: InputError) -> RequestProblem:
    """What is wrong with a request, where it was found further inside."""
    first = error.diagnostics[0]
    return RequestProblem(first.message, first.code)


def _busy_problem() -> RequestProblem:
    return RequestProblem("too many wait already", "busy", None, HTTPStatus.SERVICE_UNAVAILABLE)
