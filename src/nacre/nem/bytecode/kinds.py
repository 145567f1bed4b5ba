"""What a tree is made of, as files have it: one row a kind of node, numbered for ever.

Rows and members are only ever added: a code that was in use keeps its meaning. What is added gets a
feature (`features.py`), so that older readers refuse the file by name. docs/bytecode.md explains
the notation; a test holds the table to `syntax/ast.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nacre.nem.syntax import ast
from nacre.nem.syntax.ast import Node

_KINDS: Final = """
 1 IntLit               value=integer
 2 FloatLit             text=number
 3 NameRef              name=name
 4 Negated              operand=Expr
 5 Binary               op=Operator left=Expr right=Expr
 6 Paren                inner=Expr
 7 StringLit            value=text
 8 BoolLit              value=Flag
 9 ListLit              items=Value*
10 Quant                form=Form axis=IntLit? group_size=IntLit? scales=Value? zero_points=Value?
11 TypeAttrs            elem=NameRef? shape=Numbers? layout=NameRef? strides=Numbers? quant=Scaling? name=NameRef?
12 RegionExpr           buffer=NameRef offset=Expr extent=Expr type=Described?
13 UnitRef              unit=NameRef index=Expr
14 Decorator            name=NameRef args=Argument*?
15 MemLevel             name=Level index=Expr?
16 BufferDecl           name=NameRef level=MemLevel size=Value align=IntLit? decorators=Decorator*
17 RegionDecl           name=NameRef region=RegionExpr decorators=Decorator*
18 LetDecl              name=NameRef value=Bound decorators=Decorator*
19 ConstDecl            name=NameRef value=Value
20 Operand              value=Place decorators=Decorator*
21 Copy                 token=NameRef? op=NameRef is_sync=Flag dst=Operand src=Operand deps=NameRef* decorators=Decorator*
22 Wait                 tokens=NameRef*
23 Attribute            name=NameRef value=Value
24 Compute              token=NameRef? op=NameRef is_sync=Flag inputs=Operand* outputs=Operand* deps=NameRef* attributes=Attribute* decorators=Decorator*
25 Loop                 variable=NameRef first=Expr last=Expr decorators=Decorator*
26 EndLoop
27 TypeParam            name=NameRef types=NameRef*
28 OperandBinding       operand=NameRef type=NameRef
29 AttributeBinding     name=NameRef value=NameRef on=NameRef?
30 Conformance          level=NameRef types=NameRef*
31 VariantDecl          name=NameRef operands=OperandBinding* conformance=Conformance*
32 TypeFamily           name=NameRef params=TypeParam* operands=OperandBinding* attributes=AttributeBinding* variants=VariantDecl*
33 UnitCount            unit=NameRef count=IntLit
34 UnitBlock            units=UnitCount*
35 PerEngine            units=UnitCount* l1_size=Expr?
36 Topology             num_engines=IntLit? l2_size=Expr? device_units=UnitBlock? per_engine=PerEngine?
37 Characteristic       key=NameRef value=IntLit
38 UnitCharacteristics  unit=NameRef entries=Characteristic*
39 CharacteristicsBlock groups=UnitCharacteristics*
40 VariantRef           family=name types=NameRef*? variant=name
41 VariantBlock         variants=VariantRef*
42 DeviceConfig         name=NameRef extends=NameRef? spec_version=StringLit? topology=Topology? characteristics=CharacteristicsBlock? mandatory=VariantBlock? extended=VariantBlock?
43 Include              path=StringLit
44 DeviceRef            target=Target
45 ProgramHeader        name=NameRef
46 Document             includes=Include* configs=Config* device=DeviceRef? header=ProgramHeader? body=Stmt*
47 Compressed           plain=TypeAttrs form=Compression bits=IntLit? tables=IntLit?
"""  # noqa: E501 - a row a kind

_UNIONS: Final = """
Expr     IntLit NameRef Binary Paren Negated FloatLit
Value    IntLit NameRef Binary Paren Negated FloatLit StringLit BoolLit ListLit RegionExpr
Argument IntLit NameRef Binary Paren Negated FloatLit StringLit BoolLit ListLit RegionExpr UnitRef
Bound    IntLit NameRef Binary Paren Negated FloatLit StringLit BoolLit ListLit RegionExpr Quant TypeAttrs
Numbers  ListLit NameRef
Scaling  Quant NameRef
Place    NameRef RegionExpr
Described TypeAttrs Compressed
Target   StringLit NameRef
Config   TypeFamily DeviceConfig
Stmt     EndLoop BufferDecl RegionDecl LetDecl ConstDecl Copy Wait Compute Loop
"""  # noqa: E501

# Fields that are one of a few words.
ENUMS: Final[dict[str, tuple[str | bool, ...]]] = {
    "Flag": (False, True),
    "Operator": ("+", "-", "*", "/", "mod"),
    "Form": ("per_tensor", "per_channel", "per_group"),
    "Level": ("DDR", "L2", "L1"),
    "Compression": ("palette", "sparse"),
}
SCALARS: Final = ("integer", "number", "name", "text")


class EndLoop(Node, frozen=True):
    """`endloop`, which closes the loop that was opened last: bodies are not nested in files."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a kind: a scalar, or nodes of some kinds, one or many, needed or not."""

    name: str
    type: str
    scalar: str = ""  # integer, number, name, text or the name of an enumeration
    options: tuple[int, ...] = ()  # codes of the kinds that it may hold
    is_many: bool = False
    is_optional: bool = False

    @property
    def has_selector(self) -> bool:
        """Whether a column says which kind each of its nodes is, or that there is none."""
        return len(self.options) > 1 or (self.is_optional and not self.is_many)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of node: its number, its class, its fields in the order of files."""

    code: int
    type: type[Node]
    fields: tuple[Field, ...]

    @property
    def name(self) -> str:
        """The name of its class."""
        return self.type.__name__


def _read_tables() -> dict[int, Kind]:
    rows = [line.split() for line in _KINDS.strip().splitlines()]
    codes = {name: int(code) for code, name, *_ in rows}
    unions = {
        name: tuple(codes[member] for member in members)
        for name, *members in (line.split() for line in _UNIONS.strip().splitlines())
    }
    kinds = {}
    for code, name, *fields in rows:
        node = EndLoop if name == "EndLoop" else getattr(ast, name)
        kinds[int(code)] = Kind(int(code), node, tuple(_field(f, codes, unions) for f in fields))
    return kinds


def _field(text: str, codes: dict[str, int], unions: dict[str, tuple[int, ...]]) -> Field:
    name, _, type_ = text.partition("=")
    bare = type_.rstrip("*?")
    if bare in SCALARS or bare in ENUMS:
        return Field(name, type_, scalar=bare)
    options = unions[bare] if bare in unions else (codes[bare],)
    return Field(name, type_, "", options, "*" in type_, type_.endswith("?"))


KINDS: Final[dict[int, Kind]] = _read_tables()
CODES: Final[dict[type[Node], int]] = {kind.type: code for code, kind in KINDS.items()}
DOCUMENT: Final = CODES[ast.Document]
COMPRESSED: Final = CODES[ast.Compressed]
