"""The whole language on one page: one frozen class a production, a span on every node.

`start` and `end` are character offsets into the document's source, the end exclusive. A node that
a diagnostic already explained may lack parts (None); readers of the tree stay silent about those.
"""

from __future__ import annotations

import re

from msgspec import Struct

_FLOAT = re.compile(r"\d+\.\d+([eE][+-]?\d+)?", re.ASCII)


class Node(Struct, frozen=True, gc=False):
    """What every node has. Trees have no cycles, so the collector need not track them."""

    start: int
    end: int


# Expressions


class IntLit(Node, frozen=True):
    value: int


class FloatLit(Node, frozen=True):
    text: str  # as written: printing it again must not change a digit

    @property
    def value(self) -> float:
        """The number; not a number where the text is malformed, which the lexer has reported."""
        return float(self.text) if self.is_well_formed else float("nan")

    @property
    def is_well_formed(self) -> bool:
        """Whether the text is a float as the grammar has it."""
        return _FLOAT.fullmatch(self.text) is not None


class NameRef(Node, frozen=True):
    """An identifier, where it is declared as well as where it is used."""

    name: str


class Negated(Node, frozen=True):
    operand: Expr


class Binary(Node, frozen=True):
    op: str  # + - * / mod
    left: Expr
    right: Expr


class Paren(Node, frozen=True):
    inner: Expr


Expr = IntLit | FloatLit | NameRef | Negated | Binary | Paren


# Values


class StringLit(Node, frozen=True):
    value: str  # without the quotes, escapes undone


class BoolLit(Node, frozen=True):
    value: bool


class ListLit(Node, frozen=True):
    items: tuple[Value, ...]


class Quant(Node, frozen=True):
    """`per_tensor`, `per_channel` or `per_group`; the parts that the form has."""

    form: str
    axis: IntLit | None
    group_size: IntLit | None
    scales: Value | None  # one value for per_tensor, else a list
    zero_points: Value | None


class TypeAttrs(Node, frozen=True):
    """Written out, or `type=` and the name of a `let`, with a `quant` where that has none."""

    elem: NameRef | None
    shape: ListLit | NameRef | None
    layout: NameRef | None
    strides: ListLit | NameRef | None
    quant: Quant | NameRef | None  # written out, or the name of a `let`
    name: NameRef | None = None


class Compressed(Node, frozen=True):
    """The type of a region that holds its elements compressed: `plain` is what they become."""

    plain: TypeAttrs
    form: str  # palette, sparse
    bits: IntLit | None  # of a palette
    tables: IntLit | None  # of a palette; None: one


class RegionExpr(Node, frozen=True):
    buffer: NameRef
    offset: Expr
    extent: Expr
    type: TypeAttrs | Compressed | None


Value = Expr | StringLit | BoolLit | ListLit | RegionExpr


# Decorators


class UnitRef(Node, frozen=True):
    """`CSTL[i mod 4]`, the argument of `@resource`."""

    unit: NameRef
    index: Expr


class Decorator(Node, frozen=True):
    name: NameRef
    args: tuple[Value | UnitRef, ...] | None  # None: no parentheses


# Statements


class MemLevel(Node, frozen=True):
    name: str  # DDR, L2, L1
    index: Expr | None


class BufferDecl(Node, frozen=True):
    name: NameRef
    level: MemLevel | None
    size: Value | None
    align: IntLit | None
    decorators: tuple[Decorator, ...]


class RegionDecl(Node, frozen=True):
    name: NameRef
    region: RegionExpr
    decorators: tuple[Decorator, ...]


class LetDecl(Node, frozen=True):
    name: NameRef
    value: Value | Quant | TypeAttrs
    decorators: tuple[Decorator, ...]


class ConstDecl(Node, frozen=True):
    name: NameRef
    value: Value


class Operand(Node, frozen=True):
    value: NameRef | RegionExpr
    decorators: tuple[Decorator, ...]


class Copy(Node, frozen=True):
    """`transfer` or `store`, `.async` or `.sync`."""

    token: NameRef | None
    op: NameRef  # transfer, store
    is_sync: bool
    dst: Operand | None
    src: Operand | None
    deps: tuple[NameRef, ...]
    decorators: tuple[Decorator, ...]


class Wait(Node, frozen=True):
    tokens: tuple[NameRef, ...]


class Attribute(Node, frozen=True):
    name: NameRef
    value: Value


class Compute(Node, frozen=True):
    token: NameRef | None
    op: NameRef
    is_sync: bool
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    deps: tuple[NameRef, ...]
    attributes: tuple[Attribute, ...]
    decorators: tuple[Decorator, ...]


class Loop(Node, frozen=True):
    variable: NameRef | None
    first: Expr | None
    last: Expr | None
    decorators: tuple[Decorator, ...]
    body: tuple[Stmt, ...]
    header_end: int  # just after the colon
    endloop: int  # where `endloop` starts


class Broken(Node, frozen=True):
    """A statement with a syntax error.

    What it would have declared is known, so that uses of it are not reported again.
    """

    declares: NameRef | None


Stmt = BufferDecl | RegionDecl | LetDecl | ConstDecl | Copy | Wait | Compute | Loop | Broken


# Type families


class TypeParam(Node, frozen=True):
    name: NameRef
    types: tuple[NameRef, ...]


class OperandBinding(Node, frozen=True):
    operand: NameRef
    type: NameRef  # an element type, a type parameter, `absent` or `any_supported`


class AttributeBinding(Node, frozen=True):
    name: NameRef
    value: NameRef
    on: NameRef | None  # `required on dst`


class Conformance(Node, frozen=True):
    level: NameRef  # MUST, MAY
    types: tuple[NameRef, ...]


class VariantDecl(Node, frozen=True):
    name: NameRef
    operands: tuple[OperandBinding, ...]
    conformance: tuple[Conformance, ...]


class TypeFamily(Node, frozen=True):
    name: NameRef  # one or two dotted parts
    params: tuple[TypeParam, ...]
    operands: tuple[OperandBinding, ...]
    attributes: tuple[AttributeBinding, ...]
    variants: tuple[VariantDecl, ...]
    variants_start: int  # of the word `variants`


# Devices


class UnitCount(Node, frozen=True):
    unit: NameRef
    count: IntLit | None


class UnitBlock(Node, frozen=True):
    units: tuple[UnitCount, ...]


class PerEngine(Node, frozen=True):
    units: tuple[UnitCount, ...]
    l1_size: Expr | None
    l1_start: int  # of the key `l1_size_bytes`; 0 where it is missing


class Topology(Node, frozen=True):
    num_engines: IntLit | None
    l2_size: Expr | None
    device_units: UnitBlock | None
    per_engine: PerEngine | None
    starts: tuple[int, int]  # of the keys `num_engines` and `l2_size_bytes`


class Characteristic(Node, frozen=True):
    key: NameRef
    value: IntLit | None


class UnitCharacteristics(Node, frozen=True):
    unit: NameRef
    entries: tuple[Characteristic, ...]


class CharacteristicsBlock(Node, frozen=True):
    groups: tuple[UnitCharacteristics, ...]


class VariantRef(Node, frozen=True):
    """`gemm.float<bf16>.no_bias`: the last dotted part is always the variant."""

    family: str
    types: tuple[NameRef, ...] | None  # None: no angle brackets
    variant: str


class VariantBlock(Node, frozen=True):
    variants: tuple[VariantRef, ...]


class DeviceConfig(Node, frozen=True):
    name: NameRef
    extends: NameRef | None
    spec_version: StringLit | None
    topology: Topology | None
    characteristics: CharacteristicsBlock | None
    mandatory: VariantBlock | None
    extended: VariantBlock | None
    spec_start: int  # of the key `spec_version`; 0 where it is missing


# Documents


class Include(Node, frozen=True):
    path: StringLit


class DeviceRef(Node, frozen=True):
    """`device "file"` or `device NAME`."""

    target: StringLit | NameRef


class ProgramHeader(Node, frozen=True):
    name: NameRef


class Document(Node, frozen=True):
    """A file. A program has a header, statements or a device reference; the rest is a config."""

    includes: tuple[Include, ...]
    configs: tuple[TypeFamily | DeviceConfig, ...]
    device: DeviceRef | None
    header: ProgramHeader | None
    body: tuple[Stmt, ...]

    @property
    def is_program(self) -> bool:
        """Whether the document is a program rather than a config document."""
        return bool(self.body) or self.header is not None or self.device is not None

    @property
    def devices(self) -> tuple[DeviceConfig, ...]:
        """The device configurations, in order."""
        return tuple(c for c in self.configs if isinstance(c, DeviceConfig))

    @property
    def families(self) -> tuple[TypeFamily, ...]:
        """The type families, in order."""
        return tuple(c for c in self.configs if isinstance(c, TypeFamily))


class Comment(Node, frozen=True):
    text: str  # with the `#`, without trailing blanks


_PLACES = frozenset(
    {"start", "end", "header_end", "endloop", "starts", "l1_start", "spec_start", "variants_start"}
)


def same_meaning(a: object, b: object) -> bool:
    """Whether two trees are equal apart from where things stand."""
    # A list instead of recursion: a sum of hundreds of terms is as many levels deep.
    pending: list[tuple[object, object]] = [(a, b)]
    while pending:
        x, y = pending.pop()
        if type(x) is not type(y):
            return False
        if isinstance(x, Node):
            fields = [name for name in x.__struct_fields__ if name not in _PLACES]
            pending += [(getattr(x, name), getattr(y, name)) for name in fields]
        elif isinstance(x, tuple) and isinstance(y, tuple):
            if len(x) != len(y):
                return False
            pending += zip(x, y, strict=True)
        elif x != y:
            return False
    return True
