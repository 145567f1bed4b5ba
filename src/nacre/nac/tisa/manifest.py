"""Manifests: bytes to instructions and back, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import cast

from nacre.nac.format.cursor import Broken, Cursor
from nacre.nac.format.packing import pack, text
from nacre.nac.rules.tokenizer import NAC60, NAC61, NAC62
from nacre.nac.tisa.instructions import (
    BEHAVIOURS,
    CATEGORIES,
    FLAGS,
    FORMS,
    HAS_BEHAVIOUR,
    HAS_TRIM,
    INVERTED,
    MAGIC,
    NO_ID,
    OPERATIONS,
    PROTECTED,
    SPLITS,
    TAKES_LEFT,
    TAKES_RIGHT,
    VERSION,
    WHOLE_WORD,
    CutRule,
    Field,
    Instruction,
    Item,
    Operand,
    Operation,
    SoughtToken,
)

_ID_BYTES = 4


def read(manifest: bytes | memoryview) -> tuple[Instruction, ...]:
    """The instructions of a manifest; `Broken` says what is wrong with it."""
    cursor = Cursor(memoryview(manifest), "PROC")
    head = bytes(cursor.take(len(MAGIC), "the mark of the manifest"))
    version = cursor.u8("the version of the manifest")
    if head != MAGIC or version != VERSION:
        message = f"the manifest begins with {head!r} and version {version}, not {MAGIC!r} and 1"
        raise Broken(NAC60, cursor.position(0), message)
    instructions: list[Instruction] = []
    while cursor.remaining:
        instructions.append(_instruction(cursor, len(instructions)))
    return tuple(instructions)


def write(instructions: Iterable[Instruction]) -> bytes:
    """The manifest of a program."""
    parts = [MAGIC, pack("B", "version", VERSION)]
    for instruction in instructions:
        payload = b"".join(
            _WRITERS[field](value)
            for (_, field), value in zip(
                instruction.operation.operands, instruction.operands, strict=True
            )
        )
        parts += [pack("BI", "length", instruction.opcode, len(payload)), payload]
    return b"".join(parts)


def _instruction(cursor: Cursor, index: int) -> Instruction:
    start = cursor.at
    opcode = cursor.u8("an opcode")
    operation = OPERATIONS.get(opcode)
    if operation is None:
        known = ", ".join(f"{code:02x}" for code in OPERATIONS)
        message = f"step {index} has opcode {opcode:02x}; TISA has {known}"
        raise Broken(NAC61, cursor.position(start), message)
    what = f"the payload of {operation.name}"
    length = cursor.u32(f"the length of {what}")
    begin = cursor.at
    payload = cursor.take(length, what)
    inner = Cursor(payload, "PROC")
    try:
        operands = tuple(_READERS[field](inner, what) for _, field in operation.operands)
        _require_meaning(operation, operands, inner)
    except Broken as problem:
        place = cursor.position(begin + problem.position.offset)
        raise Broken(problem.rule, place, f"step {index}: {problem.message}") from None
    return Instruction(opcode, operands)


def _require_meaning(operation: Operation, operands: tuple[Operand, ...], inner: Cursor) -> None:
    """Refuse operands that are well-formed and mean nothing."""
    if inner.remaining:
        raise Broken(
            NAC62, inner.position(), f"{operation.name} has {inner.remaining} bytes too many"
        )
    if operation.name == "UNICODE_NORM" and operands[0] not in FORMS:
        message = f"{operands[0]!r} is no normal form; they are {', '.join(FORMS)}"
        raise Broken(NAC62, inner.position(0), message)
    if operation.name == "FILTER_CATEGORY":
        unknown = [name for name in cast(tuple[str, ...], operands[0]) if name not in CATEGORIES]
        if unknown:
            raise Broken(NAC62, inner.position(0), f"{unknown[0]!r} is no category of Unicode")
    if operation.name in ("REPLACE", "INSERT", "INSERT_FIRST") and not operands[0]:
        raise Broken(NAC62, inner.position(0), f"{operation.name} has an empty pattern")
    if operation.name == "SPLIT_LENGTH" and not operands[0]:
        raise Broken(NAC62, inner.position(0), "SPLIT_LENGTH has a length of 0")
    _require_known_flags(operation, operands, inner)


def _require_known_flags(
    operation: Operation, operands: tuple[Operand, ...], inner: Cursor
) -> None:
    known = FLAGS.get(operation.name)
    if known is None:
        return
    at = [field for _, field in operation.operands].index("flags")
    flags = cast(int, operands[at])
    if flags & ~known or (operation.name == "SPLIT" and flags & ~INVERTED not in SPLITS.values()):
        raise Broken(NAC62, inner.position(0), f"{operation.name} has the flags {flags:#04x}")


def _flag(cursor: Cursor, what: str) -> bool:
    value = cursor.u8(what)
    if value > 1:
        raise Broken(NAC62, cursor.position(cursor.at - 1), f"{what} is {value}; it can be 0 or 1")
    return bool(value)


def _text8(cursor: Cursor, what: str) -> str:
    return cursor.text(cursor.u8(what), what)


def _text16(cursor: Cursor, what: str) -> str:
    return cursor.text(cursor.u16(what), what)


def _rule(cursor: Cursor, what: str) -> CutRule:
    flags = cursor.u8(what)
    if flags & ~(PROTECTED | HAS_BEHAVIOUR | HAS_TRIM):
        raise Broken(NAC62, cursor.position(cursor.at - 1), f"a rule has the flags {flags:#04x}")
    pattern = _text16(cursor, "the pattern of a rule")
    behaviour = cursor.u8("the behaviour of a rule") if flags & HAS_BEHAVIOUR else None
    if behaviour is not None and behaviour not in BEHAVIOURS:
        raise Broken(NAC62, cursor.position(cursor.at - 1), f"a rule has the behaviour {behaviour}")
    trim = _text8(cursor, "the trim of a rule") if flags & HAS_TRIM else None
    return CutRule(pattern, bool(flags & PROTECTED), behaviour, trim)


def _item(cursor: Cursor, what: str) -> Item:
    if not _flag(cursor, "the kind of an item"):
        return Item()
    if not _flag(cursor, "whether an item is an id"):
        return Item(_text8(cursor, "the token of an item"))
    raw = cursor.take(_ID_BYTES, "the id of an item")
    return Item(int.from_bytes(raw, "little", signed=True))


def _rules(cursor: Cursor, what: str) -> tuple[CutRule, ...]:
    start = cursor.at
    count = cursor.u16("the number of rules")
    return cursor.take_records(count, 3, "rules", lambda: _rule(cursor, what), start)


def _items(cursor: Cursor, what: str) -> tuple[Item, ...]:
    start = cursor.at
    count = cursor.u8("the number of items")
    return cursor.take_records(count, 1, "items", lambda: _item(cursor, what), start)


def _texts8(cursor: Cursor, what: str) -> tuple[str, ...]:
    start = cursor.at
    count = cursor.u8(f"the number of texts of {what}")
    return cursor.take_records(count, 1, "texts", lambda: _text8(cursor, what), start)


def _token(cursor: Cursor, what: str) -> SoughtToken:
    flags = cursor.u8("the flags of a token")
    if flags & ~(WHOLE_WORD | TAKES_LEFT | TAKES_RIGHT):
        raise Broken(NAC62, cursor.position(cursor.at - 1), f"a token has the flags {flags:#04x}")
    index = _id(cursor, "the id of a token")
    start = cursor.at
    token = SoughtToken(_text16(cursor, "the text of a token"), index, flags)
    if not token.text or index < 0:
        raise Broken(NAC62, cursor.position(start), f"a token has id {index} and no text to find")
    return token


def _tokens(cursor: Cursor, what: str) -> tuple[SoughtToken, ...]:
    start = cursor.at
    count = cursor.u32("the number of tokens")
    return cursor.take_records(count, 7, "tokens", lambda: _token(cursor, what), start)


def _id(cursor: Cursor, what: str) -> int:
    index = int.from_bytes(cursor.take(_ID_BYTES, what), "little", signed=True)
    if index < NO_ID:
        raise Broken(NAC62, cursor.position(cursor.at - _ID_BYTES), f"{what} is {index}")
    return index


def _bytes(cursor: Cursor, what: str) -> bytes:
    return bytes(cursor.take(cursor.remaining, what))


def _rest8(cursor: Cursor, what: str) -> str | None:
    return _text8(cursor, what) if cursor.remaining else None


_READERS: Mapping[Field, Callable[[Cursor, str], Operand]] = MappingProxyType(
    {"text8": _text8, "text16": _text16, "texts8": _texts8, "rest8": _rest8, "rules": _rules,
     "items": _items, "tokens": _tokens, "bytes": _bytes, "flags": Cursor.u8,
     "count": Cursor.u32, "id": _id}
)  # fmt: skip


def _rule_bytes(rule: CutRule) -> bytes:
    flags = PROTECTED * rule.protected
    tail = b""
    if rule.behaviour is not None:
        flags |= HAS_BEHAVIOUR
        tail += pack("B", "behaviour", rule.behaviour)
    if rule.trim is not None:
        flags |= HAS_TRIM
        tail += text(rule.trim, "B", "the trim of a rule")
    return pack("B", "flags", flags) + text(rule.pattern, "H", "the pattern of a rule") + tail


def _item_bytes(item: Item) -> bytes:
    if item.value is None:
        return b"\0"
    if isinstance(item.value, str):
        return b"\1\0" + text(item.value, "B", "the token of an item")
    return b"\1\1" + pack("i", "id", item.value)


def _token_bytes(token: SoughtToken) -> bytes:
    head = pack("Bi", "id", token.flags, token.id)
    return head + text(token.text, "H", "the text of a token")


def _number_bytes(layout: str) -> Callable[[Operand], bytes]:
    return lambda value: pack(layout, "number", cast(int, value))


def _list_writer(layout: str, one: Callable[..., bytes]) -> Callable[[Operand], bytes]:
    def write_all(value: Operand) -> bytes:
        values = cast(tuple[object, ...], value)
        return pack(layout, "list", len(values)) + b"".join(one(item) for item in values)

    return write_all


def _text_bytes(layout: str) -> Callable[[Operand], bytes]:
    return lambda value: b"" if value is None else text(cast(str, value), layout, "a text")


_WRITERS: Mapping[Field, Callable[[Operand], bytes]] = MappingProxyType(
    {
        "text8": _text_bytes("B"), "text16": _text_bytes("H"), "rest8": _text_bytes("B"),
        "texts8": _list_writer("B", _text_bytes("B")), "rules": _list_writer("H", _rule_bytes),
        "items": _list_writer("B", _item_bytes), "tokens": _list_writer("I", _token_bytes),
        "bytes": lambda value: cast(bytes, value), "flags": _number_bytes("B"),
        "count": _number_bytes("I"), "id": _number_bytes("i"),
    }
)  # fmt: skip
