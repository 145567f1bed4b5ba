"""Commands in pages with what they print: read, run, compared, and written anew.

usage: python -m tools.shown_commands PAGE ...

A page marks what is run:

    <!-- run by tests/test_examples.py -->      a `console` block: each `$ command` prints the lines
                                                below it
    <!-- NAME, used by the next commands -->    a block of any kind: it is saved under that name

A line of three dots in an output stands for lines that are left out. The blocks of a page that
saves files or is listed as WHOLE belong together and share a folder; those of other pages have one
each. Called as a program, this runs the commands of pages and writes what they print into them: as
many lines before and after the dots as there were.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300  # for one command, on a machine with other work
DOTS = "..."
WHOLE = frozenset({"docs/tour.md"})

_MARKED = re.compile(
    r"<!-- (?:run by tests/test_examples\.py|(?P<name>[\w./-]+), used by the next commands) -->\n"
    r"```\w+\n(?P<text>.*?)```",
    re.DOTALL,
)
# What differs from machine to machine and from run to run, and is no fault of the page: how long
# something took; the last digits of scales that were found with a BLAS, and so the size of a text
# with such scales in it; ratios that depend on them.
_TIMES = re.compile(r"\(\d+\.\d s\)|\btook \d+ s\b")
_NEARLY = re.compile(
    r"\d+\.\d{6,}(?:e-?\d+)?|\d+\.\d+(?= dB)|(?<=; error )\d+\.\d+e-?\d+"
    r"|[\d,]+(?= bytes\))|[\d,]+(?= bytes of page)"
)
_NEARLY_BY = 0.02
_DECIBELS = 6.0  # one step of a quantised output more or less, of a picture that is all but right


@dataclass(frozen=True, slots=True)
class Shown:
    """A command in a page, and what the page says it prints."""

    page: str
    command: str
    output: str

    def is_printed(self, found: str) -> bool:
        """Whether a run's output is what the page shows."""
        shown, lines = _lines(self.output), _lines(found)
        if DOTS not in shown:
            return _are_alike(shown, lines)
        at = shown.index(DOTS)
        before, after = shown[:at], shown[at + 1 :]
        is_long_enough = len(lines) >= len(before) + len(after)
        end = lines[len(lines) - len(after) :]
        return is_long_enough and _are_alike(before + after, lines[: len(before)] + end)

    def renewed(self, found: str) -> str:
        """A run's output, as much of it as the page shows."""
        shown, lines = _lines(self.output), _lines(found)
        if DOTS in shown:
            at = shown.index(DOTS)
            after = len(shown) - at - 1
            if len(lines) > at + after:
                lines = [*lines[:at], DOTS, *lines[len(lines) - after :]]
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class Saved:
    """A file that a page shows and the next commands use."""

    page: str
    name: str
    text: str


Step = Shown | Saved


def shown_blocks(page: Path) -> list[list[Step]]:
    """The marked blocks of a page; commands of one may use what those before it wrote."""
    name = page.relative_to(ROOT).as_posix()
    found: list[list[Step]] = []
    for match in _MARKED.finditer(page.read_text(encoding="utf-8")):
        if match["name"]:
            found.append([Saved(name, match["name"], match["text"])])
            continue
        parts = re.split(r"^\$ ", match["text"], flags=re.MULTILINE)[1:]
        split = (part.partition("\n") for part in parts)
        found.append([Shown(name, command, output) for command, _, output in split])
    is_whole = name in WHOLE or any(isinstance(step, Saved) for block in found for step in block)
    return [[step for block in found for step in block]] if is_whole else found


def environment() -> dict[str, str]:
    """Ours, with the `nacre` of this Python first on the path and nothing about the terminal.

    How far a command is says more about the machine than about the command.
    """
    kept = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "PATH": path, "PYTHONUTF8": "1", "NACRE_PROGRESS": "never"}


def make_folder(folder: Path) -> None:
    """What commands find: as in a clone, where they may leave files."""
    for name in ("examples", "src"):
        (folder / name).symlink_to(ROOT / name)


def taken(step: Step, folder: Path) -> str:
    """What a step prints; a file that is saved prints nothing."""
    if isinstance(step, Saved):
        (folder / step.name).write_text(step.text, encoding="utf-8")
        return ""
    done = subprocess.run(
        ["sh", "-c", step.command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


def _lines(text: str) -> list[str]:
    """Without blanks at line ends, which tables have and editors take away."""
    return [line.rstrip() for line in text.rstrip().splitlines()]


def _are_alike(shown: Sequence[str], found: Sequence[str]) -> bool:
    return len(shown) == len(found) and all(map(_is_alike, shown, found))


def _is_alike(shown: str, found: str) -> bool:
    if shown == found:
        return True
    shown, found = _TIMES.sub("", shown), _TIMES.sub("", found)
    if _NEARLY.sub("", shown) != _NEARLY.sub("", found):
        return False
    pairs = zip(_NEARLY.finditer(shown), _NEARLY.finditer(found), strict=True)
    return all(_are_near(a, b) for a, b in pairs)


def _are_near(shown: re.Match[str], found: re.Match[str]) -> bool:
    a, b = (float(one.group().replace(",", "")) for one in (shown, found))
    is_ratio = shown.string.startswith(" dB", shown.end())
    is_error = shown.string.endswith("; error ", 0, shown.start())  # as the ratio before it
    nearly_by = 0.5 if is_error else _NEARLY_BY
    return math.isclose(a, b, rel_tol=nearly_by, abs_tol=_DECIBELS if is_ratio else 0)


def renew(page: Path) -> int:
    """Run a page's commands, and write what they print into it; how many had changed."""
    text = page.read_text(encoding="utf-8")
    changed = 0
    for block in shown_blocks(page):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            make_folder(folder)
            for step in block:
                found = taken(step, folder)
                if isinstance(step, Saved) or step.is_printed(found):
                    continue
                old = f"$ {step.command}\n{step.output}"
                blank = step.output[len(step.output.rstrip("\n")) + 1 :] if step.output else ""
                text = text.replace(old, f"$ {step.command}\n{step.renewed(found)}{blank}")
                changed += 1
    page.write_text(text, encoding="utf-8")
    return changed


def main(arguments: Sequence[str]) -> int:
    for argument in arguments:
        print(f"{argument}: {renew(Path(argument).resolve())} outputs written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
