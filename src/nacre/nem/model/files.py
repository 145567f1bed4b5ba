"""A program's file and all that it includes, read once each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import dropwhile, pairwise
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from nacre.base.diagnostics import Diagnostic, Fix, Related
from nacre.base.excerpt import backquote
from nacre.base.fixes import removal_fix, replacement_fix
from nacre.base.hints import setting
from nacre.base.source import Source, Span, Unreadable
from nacre.base.suggest import did_you_mean, intended_name
from nacre.nem.bytecode.sources import file_around, read_program
from nacre.nem.model.builtins import builtin, builtin_file, builtin_names
from nacre.nem.model.copies import merge_copies
from nacre.nem.model.file import File
from nacre.nem.spec.limits import MAX_INCLUDED_FILES
from nacre.nem.spec.rules.includes import DVD02, INC01, INC02, INC08, INC09
from nacre.nem.spec.rules.lexical import LEX09, LEX10, LEX11
from nacre.nem.syntax.ast import StringLit
from nacre.nem.syntax.parser import ParsedSource, ParseResult, parse

_ROOT_MARKS = (".git", "pyproject.toml")
_WIDER = setting("`--include-root` widens it", "`include_roots=` widens it")


class IncludeRoots(Struct, frozen=True):
    """The folders that includes may not leave."""

    folders: tuple[Path, ...]

    def contains(self, path: Path) -> bool:
        """Whether a path, links followed, lies under one of the folders."""
        return any(path.is_relative_to(folder) for folder in self.folders)


def default_roots(program: Path | None, extra: tuple[Path, ...] = ()) -> IncludeRoots:
    """The nearest project folder above the program, else its own folder and the parent."""
    start = (program.parent if program is not None else Path.cwd()).resolve()
    widened = tuple(path.resolve() for path in extra)
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return IncludeRoots((folder, *widened))
    return IncludeRoots((start, start.parent, *widened))


_MODEL_HELP = "a model is no program yet: `nacre compile MODEL --device D -o FOLDER`"
# What files of other kinds are for, by their suffixes.
_OTHER_HELP: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys((".onnx", ".pt2", ".nac"), _MODEL_HELP),
        ".gguf": "a language model is no program yet: `nacre llm build MODEL --device D -o FOLDER`",
        ".tcb": "an image is no program: `nacre tcb verify IMAGE PROGRAM` compares it with one, "
        "and `nacre tcb run IMAGE` runs it",
    }
)


def unreadable_finding(name: str, path: Path | None, problem: Unreadable) -> Diagnostic:
    """A file that could not be read, as a diagnostic."""
    rule = {"too large": LEX09, "not text": LEX10}.get(problem.kind, LEX11)
    whole = Source(name, "", path, is_shown=False).span(0, 0)
    span = problem.span if problem.span is not None else whole
    message = f"`{name}` {problem.reason}" if problem.span is None else problem.reason
    is_other = rule in (LEX09, LEX10)
    return rule.at(span, message, help=_OTHER_HELP.get(Path(name).suffix) if is_other else None)


def load(parsed: ParseResult, roots: IncludeRoots, *, is_builtin: bool = False) -> File:
    """Read a document's includes, theirs, and so on; every file is read once.

    Shipped files include shipped files only.
    """
    return _Loader(roots).load(File(parsed, is_builtin))


class _Loader:
    """Follows includes with a stack of its own, so that long chains cost no recursion."""

    def __init__(self, roots: IncludeRoots) -> None:
        self._roots = roots
        self._files: dict[str, File] = {}  # by real path, or `nacre:` and the name
        self._chain: dict[str, File] = {}  # from the root to the file at hand
        self._is_full = False

    def load(self, root: File) -> File:
        """Fill in the includes of the root file and of everything below it."""
        key = _key_of(root.source)
        self._files[key] = root
        pending = [(root, self._references(root, is_root=True))]
        self._chain = {key: root}
        while pending:
            file, references = pending[-1]
            reference = next(references, None)
            if reference is None:
                pending.pop()
                self._chain.popitem()
                continue
            loaded = self._follow(file, *reference)
            if loaded is not None:
                new_key, new_file = loaded
                pending.append((new_file, self._references(new_file)))
                self._chain[new_key] = new_file
        merge_copies(root)
        return root

    @staticmethod
    def _references(file: File, is_root: bool = False) -> Iterator[tuple[StringLit, bool]]:
        for include in file.parsed.document.includes:
            yield include.path, False
        device = file.parsed.document.device
        # The program of an included file is ignored, and so is the device that it is for.
        if is_root and device is not None and isinstance(device.target, StringLit):
            yield device.target, True

    def _follow(self, file: File, path: StringLit, is_device: bool) -> tuple[str, File] | None:
        """Link the file that a reference names; returned when it is new and must be followed."""
        span = file.source.span(path.start, path.end)
        located = self._locate(file, path.value, span, is_device)
        if isinstance(located, Diagnostic):
            # Too many files are too many once, not once for every file too many.
            if located.code != INC09.code or not self._is_full:
                file.findings.append(located)
            self._is_full = self._is_full or located.code == INC09.code
            return None
        key, parsed, is_builtin = located
        known = self._files.get(key)
        if key in self._chain:
            file.findings.append(self._cycle(key, span))
            return None
        target = known or File(parsed, is_builtin)
        if is_device:
            file.device_file = (span, target)
        else:
            file.includes.append((span, target))
        if known is not None:
            return None
        self._files[key] = target
        return key, target

    def _locate(
        self, file: File, text: str, span: Span, is_device: bool
    ) -> tuple[str, ParseResult, bool] | Diagnostic:
        rule = DVD02 if is_device else INC02
        shipped = _find_shipped(text, is_device)
        if file.is_builtin:
            if shipped is None:
                return rule.at(span, f"no shipped file {backquote(text)}")
            return f"nacre:{shipped.source.name}", shipped, True
        if isinstance(file.source, ParsedSource):
            enclosed = file.source.enclosed(text)
            if enclosed is not None:
                return *enclosed, False
        folder = file.source.path.parent if file.source.path is not None else Path()
        path = Path(os.path.normpath(folder / text)) if "\0" not in text else Path("\0")
        resolved = _resolve(path)
        if resolved is None:
            if shipped is not None:
                return f"nacre:{shipped.source.name}", shipped, True
            beside = backquote(file.source.name, 80)
            message = f"file {backquote(text, 80)} does not exist beside {beside}"
            files = [builtin_file(name) for name in builtin_names()]
            meant = intended_name(text, files) if rule is INC02 else None
            fix = None if meant is None else replacement_fix(span, f'"{meant}"')
            return rule.at(span, message, help=did_you_mean(text, files), fix=fix)
        if not self._roots.contains(resolved):
            folders = " and ".join(f"`{folder}`" for folder in self._roots.folders)
            return INC08.at(
                span,
                f"{backquote(text, 80)} leads out of the include root",
                help=f"includes stay under {folders}; {_WIDER}",
            )
        key = str(resolved)
        if key in self._files:
            return key, self._files[key].parsed, False
        if len(self._files) > MAX_INCLUDED_FILES:
            return INC09.at(span, f"more than {MAX_INCLUDED_FILES} files are included")
        source = read_program(resolved, name=str(path))
        if isinstance(source, Unreadable):
            colon = ":" if source.span is not None else ""
            return rule.at(span, f"{backquote(text, 80)}{colon} {source.reason}")
        if not isinstance(source, ParsedSource):
            source = Source(source.name, source.text, path)
        return key, parse(source), False

    def _cycle(self, key: str, span: Span) -> Diagnostic:
        members = list(dropwhile(lambda f: f is not self._chain[key], self._chain.values()))
        names = " -> ".join(f"`{file.source.name}`" for file in [*members, members[0]])
        related = tuple(
            Related(link, "included here")
            for file, following in pairwise(members)
            for link, target in file.includes
            if target is following
        )
        if len(members) == 1:
            message, help_ = "the file includes itself", "take the include out"
            return INC01.at(span, message, help=help_, fix=_include_removal_fix(span))
        return INC01.at(span, f"files include each other: {names}", related=related,
                        help="move what both need into a third file")  # fmt: skip


def _find_shipped(text: str, is_device: bool) -> ParseResult | None:
    parsed = builtin(text)
    if parsed is None and is_device and "/" not in text:
        # `device "npm_lite.cfg"`: the examples of the specification write it so.
        parsed = builtin(f"{text.rpartition('.')[0] or text}.nem")
    return parsed


def _key_of(source: Source) -> str:
    """What a file is known by, whichever way leads to it."""
    if isinstance(source, ParsedSource):
        return source.key
    return str(source.path.resolve()) if source.path is not None else "<text>"


def _resolve(path: Path) -> Path | None:
    """Where a path leads, links followed; None where nothing is that could be asked for."""
    try:
        return path.resolve(strict=True)
    except PermissionError:
        return path.resolve()
    except NotADirectoryError:
        file = file_around(path)  # `lib.nemb/npu.nem`: a document in a file
        return None if file is None else file.resolve() / path.relative_to(file)
    except (OSError, ValueError, RuntimeError):
        return None


def _include_removal_fix(span: Span) -> Fix | None:
    """Take the `include` out that a path belongs to."""
    source, end = span.source, len(span.source.text[: span.start].rstrip())
    start = end - len("include")
    is_there = start >= 0 and source.text[start:end] == "include"
    return removal_fix(source.span(start, span.end)) if is_there else None
