"""`nacre llm serve`: where it answers, what it serves, and how it ends."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from nacre.llm.serve.server import LlmServer
from tests.cli.runner import invoke
from tests.llm.letters import LETTER_KEYS
from tests.llm.reference import llama_bytes

Capsys = pytest.CaptureFixture[str]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "letters.gguf"
    path.write_bytes(llama_bytes(pairs=LETTER_KEYS))
    return path


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Names and addresses of what was served, each interrupted at once."""
    found: list[tuple[str, str]] = []

    def interrupted(self: LlmServer) -> None:
        found.append((self.model.name, str(self.server_address[0])))
        raise KeyboardInterrupt

    monkeypatch.setattr(LlmServer, "serve_forever", interrupted)
    return found


def test_a_file_is_served_on_loopback_until_it_is_interrupted(
    model: Path, served: list[tuple[str, str]], capsys: Capsys
) -> None:
    done = invoke(capsys, "llm", "serve", model, "--port", "0", "--context", "16")
    assert done.status == 0, done.err
    assert served == [("letters", "127.0.0.1")]
    assert done.out.startswith("letters answers at http://127.0.0.1:")
    assert "/v1" in done.out


def test_a_port_that_is_taken_is_wrong_usage(model: Path, capsys: Capsys) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = invoke(capsys, "llm", "serve", model, "--port", str(port))
    assert done.status == 2
    assert f"port {port} cannot be had" in done.err


def test_a_context_beyond_what_the_model_knows_is_refused(model: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "serve", model, "--context", "65")
    assert done.status == 1
    assert "error[LLM06]" in done.err


def test_a_bundle_has_its_own_context(tmp_path: Path, capsys: Capsys) -> None:
    done = invoke(capsys, "llm", "serve", tmp_path, "--context", "8")
    assert done.status == 2
    assert "a bundle has its own" in done.err
