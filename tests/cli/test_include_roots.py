"""`--include-root`, which findings name, is there wherever a file with includes is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nacre.cli.main import main
from nacre.nem.model.devices import Device
from tests.cli.runner import invoke

Capsys = pytest.CaptureFixture[str]


def commands(group: click.Group, path: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


def test_every_verb_that_takes_a_device_takes_it() -> None:
    lacking = set()
    for name, command in commands(main):
        options = {option for param in command.params for option in param.opts}
        if "--device" in options and "--include-root" not in options:
            lacking.add(name)
    assert lacking == set()


@pytest.fixture
def device(tmp_path: Path) -> Path:
    """A device in a project, which extends one beyond it."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far/base.nem").write_text('include "npm4k.nem"\ndevice base extends npm4k {\n}\n')
    near = tmp_path / "a/b/c"
    near.mkdir(parents=True)
    file = near / "mine.nem"
    file.write_text('include "../../../far/base.nem"\ndevice mine extends base {\n}\n')
    (near / "p.nem").write_text("program p:\nconst X = 1\n")
    return file


@pytest.mark.parametrize(
    "verb",
    [
        ("check", "p.nem", "--device"),
        ("run", "p.nem", "--device"),
        ("devices",),
        ("nem", "new", "g", "--template", "gemm", "-o", "g.nem", "--device"),
        ("pack", "-o", "x.nemb"),
    ],
)
def test_includes_of_a_device_may_lead_further_where_it_is_given(
    device: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    monkeypatch.chdir(device.parent)
    refused = invoke(capsys, *verb, device.name)
    assert refused.status == 1
    assert "--include-root" in refused.text
    done = invoke(capsys, *verb, device.name, "--include-root", "../../../far")
    assert done.status == 0, done.text


def test_the_demo_takes_such_a_device(
    device: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(device.parent)
    taken: list[object] = []
    monkeypatch.setattr("nacre.cli.demo.run_demo", lambda *given: taken.append(given[1]))
    done = invoke(capsys, "demo", "--device", device.name, "--include-root", "../../../far")
    assert done.status == 0, done.text
    (given,) = taken
    assert isinstance(given, Device)
    assert given.name == "mine"
