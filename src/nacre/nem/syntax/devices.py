"""Device configurations. Fields come in any order; each at most once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nacre.base.excerpt import backquote
from nacre.base.fixes import removal_fix
from nacre.base.suggest import did_you_mean
from nacre.nem.spec.rules.devices import DEV17, DEV19, INH08
from nacre.nem.spec.rules.document import DOC19
from nacre.nem.syntax.ast import (
    Characteristic,
    CharacteristicsBlock,
    DeviceConfig,
    Expr,
    IntLit,
    NameRef,
    PerEngine,
    StringLit,
    Topology,
    UnitBlock,
    UnitCharacteristics,
    UnitCount,
    VariantBlock,
    VariantRef,
)
from nacre.nem.syntax.cursor import Cursor
from nacre.nem.syntax.expressions import expression, integer_literal, is_operator_at, string_literal
from nacre.nem.syntax.families import element_name, read_separated
from nacre.nem.syntax.values import value_of

_Entry = UnitCount | Characteristic | UnitCharacteristics
Entry = TypeVar("Entry", UnitCount, Characteristic, UnitCharacteristics)


class _FieldReader:
    """Reads `key ...` items up to the closing brace and refuses a key that comes twice."""

    def __init__(self, c: Cursor, where: str, known: tuple[str, ...]) -> None:
        self._c = c
        self._where = where
        self._known = known
        self._seen: dict[str, int] = {}

    def next_key(self) -> str:
        """The key at hand, stepped over; an empty one at the closing brace."""
        c = self._c
        key = c.texts[c.i]
        if key == "}":
            c.i += 1
            return ""
        if key not in self._known:
            if not key.replace(".", "_").isidentifier():
                c.fail_expected(f"{_names_text(self._known)} or `}}`")
            message = f"expected {_names_text(self._known)} in {self._where}, found {c.describe()}"
            c.fail_here(DOC19, message, help=did_you_mean(key, self._known),
                        fix=c.respelling_fix(self._known))  # fmt: skip
        if key in self._seen:
            c.report_token(DEV17, f"`{key}` is given twice in {self._where}")
        self._seen.setdefault(key, c.start())
        c.i += 1
        return key

    def start_of(self, key: str) -> int:
        """Where the key stands; 0 where it does not."""
        return self._seen.get(key, 0)


def _names_text(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def device_config(c: Cursor) -> DeviceConfig:
    """`device NAME extends PARENT { ... }`."""
    start = c.start()
    c.i += 1
    name = c.name("a device's name")
    extends = None
    if c.texts[c.i] == "extends":
        c.i += 1
        extends = c.reference("the parent device after `extends`")
        if c.texts[c.i] == ",":
            c.fail(INH08, f"device `{name.name}` extends more than one device",
                   help="a device has a single parent")  # fmt: skip
    c.expect("{")
    keys = ("spec_version", "topology", "unit_characteristics", "opcode.mandatory",
            "opcode.extended")  # fmt: skip
    fields = _FieldReader(c, f"device `{name.name}`", keys)
    spec: StringLit | None = None
    topology: Topology | None = None
    characteristics: CharacteristicsBlock | None = None
    blocks: dict[str, VariantBlock] = {}
    while key := fields.next_key():
        if key == "spec_version":
            c.expect("=", "`spec_version`")
            spec = string_literal(c)
        elif key == "topology":
            topology = _topology(c)
        elif key == "unit_characteristics":
            characteristics = _characteristics(c)
        else:
            blocks[key] = _variants(c)
    return DeviceConfig(
        start,
        c.last_end(),
        name,
        extends,
        spec,
        topology,
        characteristics,
        blocks.get("opcode.mandatory"),
        blocks.get("opcode.extended"),
        fields.start_of("spec_version"),
    )


def _topology(c: Cursor) -> Topology:
    start = c.starts[c.i - 1]
    c.expect("{", "`topology`")
    fields = _FieldReader(
        c, "`topology`", ("num_engines", "l2_size_bytes", "device_units", "per_engine")
    )
    engines: IntLit | None = None
    l2_size: Expr | None = None
    device_units: UnitBlock | None = None
    per_engine: PerEngine | None = None
    while key := fields.next_key():
        if key == "num_engines":
            c.expect("=", "`num_engines`")
            engines = integer_literal(c, "`num_engines`")
        elif key == "l2_size_bytes":
            c.expect("=", "`l2_size_bytes`")
            l2_size = expression(c)
        elif key == "device_units":
            device_units = _device_units(c)
        else:
            per_engine = _per_engine(c)
    starts = (fields.start_of("num_engines"), fields.start_of("l2_size_bytes"))
    return Topology(start, c.last_end(), engines, l2_size, device_units, per_engine, starts)


def _read_block(c: Cursor, where: str, read: Callable[[Cursor], Entry]) -> tuple[Entry, ...]:
    """What stands between braces, one entry after the other, none twice."""
    c.expect("{", where)
    entries = []
    while c.texts[c.i] != "}":
        entries.append(read(c))
    c.i += 1
    _report_duplicates(c, entries, where)
    return tuple(entries)


def _device_units(c: Cursor) -> UnitBlock:
    start = c.starts[c.i - 1]
    units = _read_block(c, "`device_units`", _unit_count)
    return UnitBlock(start, c.last_end(), units)


def _per_engine(c: Cursor) -> PerEngine:
    start = c.starts[c.i - 1]
    c.expect("{", "`per_engine`")
    units: list[UnitCount] = []
    l1_size: Expr | None = None
    l1_start = 0
    while c.texts[c.i] != "}":
        if c.texts[c.i] != "l1_size_bytes":
            units.append(_unit_count(c))
            continue
        if l1_start:
            c.report_token(DEV17, "`l1_size_bytes` is given twice in `per_engine`")
        l1_start = c.start()
        c.i += 1
        c.expect("=", "`l1_size_bytes`")
        l1_size = expression(c)
    c.i += 1
    _report_duplicates(c, units, "`per_engine`")
    return PerEngine(start, c.last_end(), tuple(units), l1_size, l1_start)


def _unit_count(c: Cursor) -> UnitCount:
    unit = c.name("a unit type or `}`")
    c.expect("=", f"`{unit.name}`")
    count = integer_literal(c, f"the count of `{unit.name}`")
    return UnitCount(unit.start, c.last_end(), unit, count)


def _report_duplicates(c: Cursor, entries: Sequence[_Entry], where: str) -> None:
    """Report an entry that was there before; one that says the same can be taken out."""
    seen: dict[str, _Entry] = {}
    text = c.source.text
    for entry in entries:
        name = entry.key if isinstance(entry, Characteristic) else entry.unit
        first = seen.setdefault(name.name, entry)
        if first is not entry:
            is_same = text[first.start : first.end] == text[entry.start : entry.end]
            message = f"{backquote(name.name)} is given twice in {where}"
            fix = removal_fix(c.span(entry)) if is_same else None
            c.report(DEV17, message, name.start, name.end, fix=fix)


def _characteristics(c: Cursor) -> CharacteristicsBlock:
    start = c.starts[c.i - 1]
    groups = _read_block(c, "`unit_characteristics`", _group)
    return CharacteristicsBlock(start, c.last_end(), groups)


def _group(c: Cursor) -> UnitCharacteristics:
    unit = c.name("a unit type or `}`")
    entries = _read_block(c, f"`{unit.name}`", _characteristic)
    return UnitCharacteristics(unit.start, c.last_end(), unit, entries)


def _characteristic(c: Cursor) -> Characteristic:
    key = c.name("a characteristic or `}`")
    c.expect("=", f"`{key.name}`")
    value = _whole_number(c, key)
    return Characteristic(key.start, c.last_end(), key, value)


def _whole_number(c: Cursor, key: NameRef) -> IntLit | None:
    sign = c.texts[c.i] == "-"
    if c.texts[c.i + sign].isdigit() and not is_operator_at(c.texts, c.i + sign + 1):
        return integer_literal(c, f"`{key.name}`")
    value = value_of(c)
    written = backquote(c.source.text[value.start : value.end])
    message = f"characteristic `{key.name}` takes an integer literal, found {written}"
    c.report(DEV19, message, value.start, value.end)
    return None


def _variants(c: Cursor) -> VariantBlock:
    start = c.starts[c.i - 1]
    c.expect("{", f"`{c.texts[c.i - 1]}`")
    variants = []
    while c.texts[c.i] != "}":
        variants.append(_variant_ref(c))
    c.i += 1
    return VariantBlock(start, c.last_end(), tuple(variants))


def _variant_ref(c: Cursor) -> VariantRef:
    text = c.texts[c.i]
    start = c.start()
    if not all(part.isidentifier() for part in text.split(".")):
        c.fail_expected("a variant such as `gemm.float<bf16>.no_bias`, or `}`")
    c.i += 1
    if c.texts[c.i] != "<":
        family, dot, variant = text.rpartition(".")
        if not dot:
            c.i -= 1
            c.fail_here(DOC19, f"expected a variant such as `cast.default`, found {c.describe()}")
        return VariantRef(start, c.last_end(), family, None, variant)
    c.i += 1
    types = read_separated(c, ">", element_name)
    c.expect(".", "the types")
    variant_name = c.name("the variant's name")
    return VariantRef(start, variant_name.end, text, types, variant_name.name)
