"""HTTP on loopback: `/v1/models`, `/v1/completions` and `/v1/chat/completions`, also as streams.

Requests come from whatever runs on this machine, pages in a browser included. So only the names of
this machine are answered, bodies say that they are JSON and how long they are, and everything that
is wrong has an answer with a code.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from nacre.base.diagnostics import InputError
from nacre.base.digits import is_digits
from nacre.llm.serve.answers import AnswerForm, Json, Kind, problem_json, usage_of
from nacre.llm.serve.model import ServedModel, refused
from nacre.llm.serve.requests import (
    ChatRequest,
    CompletionRequest,
    RequestProblem,
    read_chat,
    read_completion,
)
from nacre.llm.serve.stops import StopTexts

LOOPBACK = "127.0.0.1"
_MOST_BODY = 1 << 20
_SILENCE_SECONDS = 30.0  # after which a client that says nothing is left
_OWN_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_POSTS: Mapping[str, Kind] = {"/v1/completions": "completion", "/v1/chat/completions": "chat"}
_GETS = ("/v1/models",)


class LlmServer(ThreadingHTTPServer):
    """A server of one model; port 0 is one that is free."""

    daemon_threads = True

    def __init__(self, model: ServedModel, port: int = 0) -> None:
        self.model = model
        super().__init__((LOOPBACK, port), _Handler)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that is gone, mostly; nothing that a terminal should show."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: LlmServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "nacre", ""
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        self._answer(self._get)

    def do_POST(self) -> None:
        self._answer(self._post)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged: prompts are nobody's business."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the library refuses by itself, as everything else is refused."""
        status = HTTPStatus(code)
        problem = RequestProblem(message or status.phrase, "bad_request", None, status)
        self._send(problem_json(problem), problem.status)

    def _answer(self, work: Callable[[], None]) -> None:
        # What was refused may have left a part of its body behind.
        self.close_connection = True
        try:
            self._require_own_name()
            work()
        except RequestProblem as problem:
            self._send(problem_json(problem), problem.status)
        except InputError as error:
            self._send(problem_json(refused(error)), HTTPStatus.BAD_REQUEST)
        except OSError:  # the client is gone, or silent
            return
        except Exception:  # a fault of ours, which is no business of a client
            message = "an internal error"
            ours = HTTPStatus.INTERNAL_SERVER_ERROR
            self._send(problem_json(RequestProblem(message, "internal", None, ours)), ours)

    def _require_own_name(self) -> None:
        """A page of another site may reach this machine by a name of its own."""
        name = self.headers.get("Host", "")
        host = name.rpartition(":")[0] if not name.endswith("]") and ":" in name else name
        if host.lower() not in _OWN_NAMES:
            message = "only this machine is answered, by its own names"
            raise RequestProblem(message, "forbidden", None, HTTPStatus.FORBIDDEN)

    def _get(self) -> None:
        self._require_path(_GETS, tuple(_POSTS))
        model = {"id": self.server.model.name, "object": "model", "owned_by": "nacre"}
        self._send({"object": "list", "data": [model]})

    def _post(self) -> None:
        path = self._require_path(tuple(_POSTS), _GETS)
        body = self._body()
        kind = _POSTS[path]
        request = read_chat(body) if kind == "chat" else read_completion(body)
        form = AnswerForm(
            kind, f"cmpl-{uuid.uuid4().hex}", int(time.time()), self.server.model.name
        )
        (self._stream if request.is_streamed else self._answer_at_once)(request, form)

    def _require_path(self, known: tuple[str, ...], others: tuple[str, ...]) -> str:
        path = self.path.partition("?")[0]
        if path in known:
            return path
        if path in others:
            message = f"{path} is not for {self.command}"
            raise RequestProblem(message, "method", None, HTTPStatus.METHOD_NOT_ALLOWED)
        listed = ", ".join((*_GETS, *_POSTS))
        message = f"there are {listed}"
        raise RequestProblem(message, "not_found", None, HTTPStatus.NOT_FOUND)

    def _body(self) -> bytes:
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            message = "a body must be application/json"
            raise RequestProblem(message, "media_type", None, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = self.headers.get("Content-Length", "")
        if not is_digits(length) or "Transfer-Encoding" in self.headers:
            message = "a request must say how long its body is"
            raise RequestProblem(message, "length", None, HTTPStatus.LENGTH_REQUIRED)
        if len(length) > len(str(_MOST_BODY)) or int(length) > _MOST_BODY:
            message = f"a body may have {_MOST_BODY:,} bytes"
            raise RequestProblem(message, "too_large", None, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise RequestProblem("the body is shorter than it says", "length")
        return body

    def _answer_at_once(self, request: CompletionRequest | ChatRequest, form: AnswerForm) -> None:
        stops = StopTexts(request.stops)
        with self.server.model.generation(request) as generation:
            text = "".join(stops.before_stop(generation))
        finish = "stop" if stops.is_found else generation.finish
        usage = usage_of(generation.prompt_tokens, generation.tokens)
        self._send(form.whole(text, finish, usage))

    def _stream(self, request: CompletionRequest | ChatRequest, form: AnswerForm) -> None:
        stops = StopTexts(request.stops)
        with self.server.model.generation(request) as generation:
            pieces = stops.before_stop(generation)
            piece = next(pieces, "")  # what is wrong shows before an answer begins
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Cache-Control", "no-store")
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                self._event(form.first())
                self._event(form.piece(piece) if piece else None)
                for piece in pieces:
                    self._event(form.piece(piece) if piece else None)
                self._event(form.last("stop" if stops.is_found else generation.finish))
                usage = usage_of(generation.prompt_tokens, generation.tokens)
                self._event(form.usage(usage) if request.wants_usage else None)
                self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, content: Json | None) -> None:
        if content is not None:
            self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")
            self.wfile.flush()

    def _send(self, content: Json, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = json.dumps(content).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Connection", "close")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)
