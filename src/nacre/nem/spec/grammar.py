"""The grammar as a table: docs/language.md prints it, and tests hold the parser to it.

A right-hand side is written so: `"word"` stands as it is, a name in capitals is one of `TERMINALS`,
another name a production; `x?` may be left out, `x*` may be repeated, `x | y` is one of the two;
`x & y` is both in any order, `x &, y` the same with a comma between them; `x - y` is an x that is
no y.
"""

from __future__ import annotations

from msgspec import Struct

from nacre.base.elements import ELEMENT_TYPES


class Production(Struct, frozen=True):
    """One production: its name, what it stands for, and what a reader should know of it."""

    name: str
    definition: str
    meaning: str


class Terminal(Struct, frozen=True):
    """A kind of word; an empty pattern is one that no pattern alone can say."""

    name: str
    pattern: str
    meaning: str


class Condition(Struct, frozen=True):
    """What the reader asks of a text besides the grammar, and the code that it reports."""

    code: str
    meaning: str


_NAME = "[A-Za-z_][A-Za-z_0-9]*"

TERMINALS = (
    Terminal("ID", _NAME, "a name; any word may be one, within the two limits of [words](#words)"),
    Terminal("PAIR", rf"{_NAME}\.{_NAME}", "two names joined by a dot, without blanks"),
    Terminal("DOTTED", rf"{_NAME}(\.{_NAME})+", "two names or more, joined so"),
    Terminal("INT", "[0-9]+", "a decimal integer"),
    Terminal("FLOAT", r"[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?", "digits on both sides of its point"),
    Terminal(
        "STRING", r'"([^"\\]|\\.)*"', r"on one line; `\"` and `\\` are a quote and a backslash"
    ),
    Terminal("COMPUTE", "", "any opcode but `transfer` and `store`, then `.async` or `.sync`"),
    Terminal(
        "UNTYPED",
        "",
        "nothing, where no type follows: behind a region `type=NAME`, `elem=`, `shape=`, `layout=` "
        "and `quant=` begin its type, not attributes of the task",
    ),
)

# Under the titles that the page has for them.
GRAMMAR: dict[str, tuple[Production, ...]] = {
    "Documents": (
        Production(
            "document",
            '";"* (include ";"*)* (program | library)',
            "a file",
        ),
        Production("include", '"include" STRING', "a file whose devices and families are used"),
        Production("library", '((family | device) ";"*)*', "a file for others to include"),
        Production(
            "program", '(target ";"*)? header? statement*', "at most one device, then statements"
        ),
        Production("target", '"device" STRING | "device" ID | device', "the device to run on"),
        Production("header", '"program" ID ":"', "the program's name"),
        Production(
            "statement",
            'const | let | buffer | named_region | copy | compute | wait | loop | ";"',
            "line ends mean nothing",
        ),
    ),
    "Declarations": (
        Production("const", '"const" ID "=" value', "an integer, else CST02"),
        Production(
            "let", '"let" ID "=" (type | quantisation | value) decorator*', "a name for any value"
        ),
        Production(
            "buffer",
            '"buffer" ID ":" level "(" ("size" "=" value &, ("align" "=" INT)?) ")" decorator*',
            "bytes in a memory",
        ),
        Production("level", '"DDR" | "L2" | "L1" ("[" expression "]")?', "which memory"),
        Production("named_region", 'ID "=" region decorator*', "a region with a name"),
        Production(
            "region",
            '"region" "(" ID "," expression "," expression '
            '(")" type compressed? | ("," type compressed?)? ")" UNTYPED)',
            "buffer, offset, extent; a type stands behind it, or inside (not canonical)",
        ),
    ),
    "Types": (
        Production(
            "type",
            '"type" "=" ID quant? | "elem" "=" ID "," "shape" "=" dimensions "," '
            '("layout" "=" ID | "strides" "=" dimensions) quant?',
            "one that a `let` names, or one written out",
        ),
        Production(
            "dimensions",
            'ID | "[" expression ("," expression)* "]"',
            "one for each axis; a name stands for a list",
        ),
        Production("quant", '"," "quant" "=" (quantisation | ID - form)', "also by its name"),
        Production(
            "compressed",
            '"," "compressed" "=" ("sparse" | '
            '"palette" "(" ("bits" "=" integer &, ("tables" "=" integer)?) ")")',
            "how a region holds its elements compressed; an extension of nacre (WDM01)",
        ),
        Production("form", '"per_tensor" | "per_channel" | "per_group"', "what has one scale"),
        Production(
            "quantisation",
            '"per_tensor" "(" ("scale" "=" numbers &, "zero_point" "=" numbers) ")" '
            '| "per_channel" "(" ("axis" "=" integer &, "scales" "=" numbers '
            '&, "zero_points" "=" numbers) ")" '
            '| "per_group" "(" ("axis" "=" integer &, "group_size" "=" integer '
            '&, "scales" "=" numbers &, "zero_points" "=" numbers) ")"',
            "what integers mean",
        ),
        Production(
            "numbers",
            'expression | "[" (expression ("," expression)*)? "]"',
            "a number, a list of them, or a name for either",
        ),
        Production("element", " | ".join(f'"{name}"' for name in ELEMENT_TYPES), "element types"),
    ),
    "Tasks and loops": (
        Production(
            "copy",
            '(ID "=")? ("transfer.async" | "transfer.sync" | "store.async" | "store.sync") '
            '"(" ("dst" "=" operand &, "src" "=" operand &, dependencies?) ")" decorator*',
            "the canonical order is `dst`, `src`, `deps`",
        ),
        Production(
            "compute",
            '(ID "=")? COMPUTE ("in" | "IN") operands ("out" | "OUT") operands '
            "(dependencies | attribute)* decorator*",
            "upper case is not canonical (DOC21)",
        ),
        Production("operands", 'operand ("," operand)*', "in the order of the opcode's signature"),
        Production("operand", "(ID | region) decorator*", "a region, by its name or written out"),
        Production("dependencies", '"deps" "=" "[" tokens "]"', "what the task waits for"),
        Production("attribute", '(ID - "deps") "=" plain', "between attributes stands no comma"),
        Production("wait", '"wait" "(" tokens ")"', "it has no token and no decorators"),
        Production("tokens", 'ID ("," ID)*', "names of tasks"),
        Production(
            "loop",
            '"loop" ID "in" "[" expression ".." expression "]" decorator* ":" statement* "endloop"',
            "both bounds belong to it",
        ),
    ),
    "Values": (
        Production("value", "plain | region", "what a `let` names or a list holds"),
        Production(
            "plain",
            'expression | STRING | "true" | "false" | "[" (value ("," value)*)? "]"',
            "what an attribute holds",
        ),
        Production("expression", 'product (("+" | "-") product)*', "from left to right"),
        Production(
            "product", 'signed (("*" | "/" | "mod") signed)*', "binds more tightly than a sum"
        ),
        Production("signed", '"-"* primary', "a sign, or none"),
        Production("primary", 'INT | FLOAT | ID | "(" expression ")"', "floats: not everywhere"),
        Production("integer", '"-"? INT', "a number that is written out, no expression"),
        Production("decorator", '"@" ID ("(" (argument ("," argument)*)? ")")?', "a refinement"),
        Production("argument", 'value | ID "[" expression "]"', "the second is a unit"),
    ),
    "Type families": (
        Production(
            "family",
            '"type_family" (ID | PAIR) parameters? "{" (binding | constraint)* '
            '"variants" ":" variant* "}"',
            "which types an opcode takes",
        ),
        Production("parameters", '"<" parameter ("," parameter)* ">"', "type variables"),
        Production(
            "parameter", 'ID ":" "{" element ("," element)* "}"', "a variable and what it can be"
        ),
        Production(
            "binding",
            '(ID - "variants") ":" ID',
            "an operand and its type: an element, a variable, `absent`, `any_supported`",
        ),
        Production("constraint", 'ID "=" ID ("on" ID)?', "what an attribute must be"),
        Production(
            "variant",
            'ID ":" "{" (ID ":" ID)* "}" "conformance" ":" "{" (("MUST" | "MAY") types?)* "}"',
            "further bindings, and who has it",
        ),
        Production("types", '"<" element ("," element)* ">"', "a value for each variable"),
    ),
    "Devices": (
        Production(
            "device",
            '"device" ID ("extends" ID)? '
            '"{" (version? & topology? & characteristics? & mandatory? & extended?) "}"',
            "a device",
        ),
        Production("version", '"spec_version" "=" STRING', '`"NEM-1.0"` or `"1.0"`'),
        Production(
            "topology",
            '"topology" "{" (engines? & l2_size? & device_units? & per_engine?) "}"',
            "how much there is of what",
        ),
        Production("engines", '"num_engines" "=" integer', "at least one"),
        Production("l2_size", '"l2_size_bytes" "=" expression', "of the L2 that all share"),
        Production("l1_size", '"l1_size_bytes" "=" expression', "of the L1 of each engine"),
        Production("device_units", '"device_units" "{" unit* "}"', "units that all share"),
        Production("per_engine", '"per_engine" "{" (unit | l1_size)* "}"', "units of each engine"),
        Production("unit", 'ID "=" integer', "a unit type and how many there are"),
        Production(
            "characteristics", '"unit_characteristics" "{" figures* "}"', "what units can do"
        ),
        Production("figures", 'ID "{" (ID "=" integer)* "}"', "of a unit type"),
        Production("mandatory", '"opcode.mandatory" "{" reference* "}"', "variants it surely has"),
        Production("extended", '"opcode.extended" "{" reference* "}"', "variants it also has"),
        Production(
            "reference",
            '(ID | DOTTED) types "." ID | DOTTED',
            "a variant: its family, types and name, such as `cast.default`",
        ),
    ),
}

CONDITIONS = (
    Condition("DOC17", "a task gives an attribute once, and `deps` once"),
    Condition("DEV17", "a block of a device gives each unit and each figure once"),
    Condition("DOC20", "nesting, and the operators of one statement, have limits"),
    Condition("CST16", "an integer has 64 bits with its sign"),
)
