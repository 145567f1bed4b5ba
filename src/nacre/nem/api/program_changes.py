"""A program with other windows, rings, constants or engines: what if, as edits of its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import structs

from nacre.base.excerpt import backquote
from nacre.base.source import Source
from nacre.base.suggest import did_you_mean
from nacre.nem.api.programs import LoadedProgram
from nacre.nem.api.timing import figures_error
from nacre.nem.model.program import Program
from nacre.nem.run.timing.profile import ProfileError, as_integer
from nacre.nem.run.timing.what_if import change_device
from nacre.nem.syntax import ast
from nacre.nem.syntax.formatter import format_parsed
from nacre.nem.syntax.parser import ParsedSource, ParseResult, parse

Edit = tuple[int, int, str]  # the characters from..to become this text

_MOST = 1 << 40


def is_program_key(key: str) -> bool:
    """Whether a change is about the program, not about its device."""
    return key.partition(".")[0] in ("loop", "ring", "const", "buffer", "task")


def program_keys(program: Program) -> list[str]:
    """Every figure of a program that can be changed."""
    loops = dict.fromkeys(loop.variable.name for loop in program.loops)
    tasks = dict.fromkeys(task.token for task in program.tasks if task.token is not None)
    buffers = [buffer.name for buffer in program.buffers]
    return [
        *(f"loop.{name}.max_in_flight" for name in loops),
        *(f"ring.{name}" for name in buffers),
        *(f"const.{name}" for name in program.constants),
        *(f"buffer.{name}.size" for name in buffers),
        *(f"task.{name}.seq_engine" for name in tasks),
    ]


def change_program(program: LoadedProgram, changes: Mapping[str, int]) -> LoadedProgram:
    """The program with other figures, its own or its device's, to be checked again."""
    if not isinstance(changes, Mapping):
        raise figures_error("changes map figures such as `NMU.int8_macs` to integers")
    edits = {str(k): v for k, v in changes.items() if is_program_key(str(k))}
    device_changes = {k: v for k, v in changes.items() if str(k) not in edits}
    options = program.options
    try:
        if device_changes:
            device = change_device(program.device, device_changes)
            options = structs.replace(options, device=device)
        source = change_source(program.facts.program, edits) if edits else program.source
    except ProfileError as error:
        raise figures_error(str(error)) from None
    return LoadedProgram(source, options)


def change_source(program: Program, changes: Mapping[str, int]) -> Source:
    """The program's text with some figures replaced; ProfileError says which cannot be."""
    known, problems, edits = program_keys(program), [], []
    for key, value in changes.items():
        number = as_integer(value)
        if key not in known:
            some = ", ".join(known[:8])
            hint = did_you_mean(key, known) or f"the program has {some or 'none'}"
            problems.append(f"no figure {backquote(key)}; {hint}")
        elif number is None or not 0 <= number < _MOST:
            problems.append(
                f"`{key}` is {backquote(str(value), 40)}, expected an integer from 0 on"
            )
        else:
            kind, _, rest = key.partition(".")
            try:
                edits += list(_EDITS[kind](program, rest.partition(".")[0], number))
            except ProfileError as error:
                problems.append(str(error))
    if problems:
        raise ProfileError("; ".join(problems))
    text = program.source.text
    for start, end, new in sorted(set(edits), reverse=True):
        text = text[:start] + new + text[end:]
    changed = Source(program.source.name, text, program.source.path)
    if isinstance(program.source, ParsedSource):
        return _ChangedSource(changed, program.source)
    return changed


class _ChangedSource(ParsedSource):
    """A changed text of a packed program, which goes on to include what is packed with it."""

    def __init__(self, changed: Source, packed: ParsedSource) -> None:
        super().__init__(changed.name, changed.path, changed.size)
        self._changed = changed
        self._packed = packed
        parsed = parse(changed)
        self.parsed = ParseResult(
            self, parsed.document, parsed.comments, parsed.diagnostics, parsed.unread
        )

    @property
    def text(self) -> str:
        """The changed text."""
        return self._changed.text

    @property
    def canonical_text(self) -> str:
        """The text in canonical form."""
        return format_parsed(self.parsed)

    @property
    def key(self) -> str:
        """That of the program as it was."""
        return self._packed.key

    def enclosed(self, text: str) -> tuple[str, ParseResult] | None:
        """What an include means there."""
        return self._packed.enclosed(text)


def _loop(program: Program, name: str, value: int) -> Iterator[Edit]:
    for loop in program.loops:
        if loop.variable.name != name:
            continue
        node = loop.node
        windows = [d for d in node.decorators if d.name.name == "max_in_flight"]
        if windows:
            yield windows[0].start, windows[0].end, f"@max_in_flight({value})"
        elif node.last is not None:
            at = program.source.text.index("]", node.last.end) + 1
            yield at, at, f" @max_in_flight({value})"


def _const(program: Program, name: str, value: int) -> Iterator[Edit]:
    for node in program.document.body:
        if isinstance(node, ast.ConstDecl) and node.name.name == name:
            yield node.value.start, node.value.end, str(value)


def _buffer(program: Program, name: str, value: int) -> Iterator[Edit]:
    for buffer in program.buffers:
        if buffer.name == name and buffer.node.size is not None:
            yield buffer.node.size.start, buffer.node.size.end, str(value)


def _task(program: Program, name: str, value: int) -> Iterator[Edit]:
    for task in program.tasks:
        if task.token == name:
            # One behind the last operand is the task's as well, so the resolved ones are asked.
            nodes = [d.node for d in task.decorators if d.name == "seq_engine"]
            start, end = (nodes[0].start, nodes[0].end) if nodes else (task.node.end, task.node.end)
            yield start, end, f"@seq_engine({value})" if nodes else f" @seq_engine({value})"


def _ring(program: Program, name: str, value: int) -> Iterator[Edit]:
    """As many slots: the `mod` in the offsets of a buffer's regions, and its size."""
    buffer = next(b for b in program.buffers if b.name == name)
    slots = [
        node.right
        for region in program.regions
        if region.buffer is buffer
        for node in _walk(region.node.offset)
        if isinstance(node, ast.Binary) and node.op == "mod"
    ]
    literals = [node for node in slots if isinstance(node, ast.IntLit)]
    counts = {node.value for node in literals}
    if not slots or len(literals) < len(slots) or len(counts) > 1:
        names = [f"`const.{n.name}`" for n in slots if isinstance(n, ast.NameRef)]
        hint = f"; change {names[0]}" if names else ", as `(i mod 2) * tile` has"
        raise ProfileError(f"the offsets in `{name}` have no one number of slots{hint}")
    before = counts.pop()
    size, node = buffer.size or 0, buffer.node.size
    if value < 1 or before < 1 or size % before or node is None:
        raise ProfileError(f"`{name}` of {size} bytes is no ring of {before} slots")
    yield node.start, node.end, str(size // before * value)
    yield from ((n.start, n.end, str(value)) for n in literals)


def _walk(node: ast.Expr) -> Iterator[ast.Expr]:
    stack = [node]
    while stack:
        part = stack.pop()
        yield part
        if isinstance(part, ast.Binary):
            stack += (part.left, part.right)
        elif isinstance(part, ast.Paren):
            stack.append(part.inner)
        elif isinstance(part, ast.Negated):
            stack.append(part.operand)


_EDITS: dict[str, Callable[[Program, str, int], Iterator[Edit]]] = {
    "loop": _loop,
    "ring": _ring,
    "const": _const,
    "buffer": _buffer,
    "task": _task,
}
