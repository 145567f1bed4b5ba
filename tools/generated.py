"""Files that are written by a program and committed: write the stale ones, or say that they are."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(texts: Mapping[Path, str], arguments: list[str], purpose: str) -> int:
    """Bring files up to date, or with --check only report them; the exit status."""
    parser = argparse.ArgumentParser(description=purpose)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when stale")
    check = parser.parse_args(arguments).check
    stale = [path for path, text in texts.items() if not _holds(path, text)]
    for path in stale:
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"{shown} {'is stale; run `make docs`' if check else 'written'}")
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts[path], encoding="utf-8")
    return int(check and bool(stale))


def markdown_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; bars in cells are no borders."""
    head = tuple(columns)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n" for cells in lines
    )


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text
