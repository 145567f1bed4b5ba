"""Random NEM documents that follow the grammar, as texts.

A document is drawn as chunks of tokens (a statement, a loop header, `endloop`, a declaration of a
config), and then written out with random blanks, line ends and comments between the tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from nacre.base.elements import ELEMENT_TYPES
from nacre.nem.spec.opcodes import OPCODES
from nacre.nem.spec.units import DEVICE_UNITS, ENGINE_UNITS, UNITS

Tokens = list[str]
Strategy = st.SearchStrategy[Tokens]


class Held(str):
    """A name that stays on the line of the token before it.

    Words that begin statements may serve as names. But where one of them begins a line, and what
    follows fits, it is read as that statement: `let a =` / `let b = 4` must be a `let` that lacks
    its value, not one that binds the name `let`. Newlines mean nothing else in the language.
    """

    __slots__ = ()


PLAIN_NAMES = ("A", "b", "x1", "_t", "Y_tile", "W_L1", "tok", "a_rather_long_name_of_a_tile")
STATEMENT_WORDS = ("loop", "wait", "const", "let", "buffer", "device", "program", "include",
                   "type_family")  # fmt: skip
CONTEXTUAL_WORDS = (
    "in", "out", "IN", "OUT", "type", "elem", "shape", "layout", "strides", "quant", "mod", "deps",
    "region", "async", "sync", "op", "size", "align", "dst", "src", "relu", "transfer", "store",
    "true", "false", "variants", "conformance", "extends", "on", "L1", "DDR", "i8", "NMU",
    "per_tensor", "scale", "compressed", "palette", "required", "endloops",
)  # fmt: skip

# `endloop` is left out: it ends a loop wherever it stands, unless a `=` follows.
plain_names = st.sampled_from(PLAIN_NAMES)
names = st.one_of(
    plain_names, st.sampled_from(CONTEXTUAL_WORDS), st.sampled_from(STATEMENT_WORDS).map(Held)
)
# The formatter may put the last operand on a line of its own, so these two are no operands.
operand_names = names.filter(lambda n: n not in ("let", "const"))
# After a region these five would be its type; the language has no such compute attributes.
attribute_names = names.filter(
    lambda n: n not in ("type", "elem", "shape", "layout", "quant", "deps")
)

integers = st.one_of(
    st.integers(0, 9).map(str), st.sampled_from(["007", "4096", "9223372036854775807"])
)
floats = st.sampled_from(["1.0", "0.5", "1.0e-5", "2.25E+10", "00.10", "3.0e7"])
string_pieces = st.sampled_from(
    ["npm", ".nem", " ", "/", "#", "é", "学", r"\"", r"\\", r"\n", ";", "{", "'", "\t", "\u2028"]
)
strings = st.lists(string_pieces, max_size=4).map(lambda parts: f'"{"".join(parts)}"')
signed = st.tuples(st.sampled_from([[], ["-"]]), integers).map(lambda p: [*p[0], p[1]])


def joined(parts: Sequence[Tokens], separator: str = ",") -> Tokens:
    """The parts with the separator between them."""
    tokens: Tokens = []
    for index, part in enumerate(parts):
        tokens += [separator, *part] if index and separator else part
    return tokens


def concat(*parts: Strategy | str) -> Strategy:
    """Tokens of all parts one after the other; a plain text is the tokens that it names."""
    lists = [st.just(part.split()) if isinstance(part, str) else part for part in parts]
    return _drawn_in_turn(_Parts(lists))


class _Parts:
    """Strategies that are not spelled out in a message, where nested ones take 100 kB."""

    def __init__(self, strategies: list[Strategy]) -> None:
        self.strategies = strategies

    def __repr__(self) -> str:
        return f"<{len(self.strategies)} parts>"


@st.composite
def _drawn_in_turn(draw: st.DrawFn, parts: _Parts) -> Tokens:
    return [token for part in parts.strategies for token in draw(part)]


def one(texts: st.SearchStrategy[str]) -> Strategy:
    """A single token."""
    return texts.map(lambda text: [text])


def comma_list(item: Strategy, least: int = 1, most: int = 3) -> Strategy:
    """Items with commas between them."""
    return st.lists(item, min_size=least, max_size=most).map(joined)


def sequence(item: Strategy, most: int = 3) -> Strategy:
    """Any number of items, with nothing between them."""
    return st.lists(item, max_size=most).map(lambda parts: joined(parts, ""))


def maybe(part: Strategy) -> Strategy:
    """The part or nothing."""
    return st.one_of(st.just([]), part)


def some_of(*parts: Strategy) -> Strategy:
    """Some of the parts, in any order."""
    return st.tuples(
        st.permutations(range(len(parts))), st.integers(0, len(parts)), st.tuples(*parts)
    ).map(lambda p: [token for index in p[0][: p[1]] for token in p[2][index]])


def all_of(*parts: Strategy, separator: str = ",") -> Strategy:
    """All of the parts, in any order."""
    return st.tuples(st.permutations(range(len(parts))), st.tuples(*parts)).map(
        lambda p: joined([p[1][index] for index in p[0]], separator)
    )


# Expressions and values


def _larger(inner: Strategy) -> Strategy:
    operator = one(st.sampled_from(["+", "-", "*", "/", "mod"]))
    return st.one_of(concat(inner, operator, inner), concat("(", inner, ")"), concat("-", inner))


atoms = one(st.one_of(names, integers, floats))
expressions = st.recursive(atoms, _larger, max_leaves=4)


def _long_list(count: int) -> Tokens:
    return joined([[f"item_{index}"] for index in range(count)])


long_lists = st.integers(12, 40).map(_long_list)
expression_lists = concat("[", comma_list(expressions), "]")
name_lists = st.one_of(comma_list(one(names)), long_lists)


def _types(numbers: Strategy) -> Strategy:
    axis, group = concat("axis =", signed), concat("group_size =", one(integers))
    per_tensor = all_of(concat("scale =", numbers), concat("zero_point =", numbers))
    quant = st.one_of(
        concat("per_tensor (", per_tensor, ")"),
        concat("per_channel (", all_of(axis, *_per_axis(numbers)), ")"),
        concat("per_group (", all_of(axis, group, *_per_axis(numbers)), ")"),
    )
    place = st.one_of(concat("layout =", one(names)), concat("strides =", expression_lists))
    shape = st.one_of(expression_lists, one(names))
    quantised = maybe(concat(", quant =", quant))
    whole = concat(
        "elem =",
        one(st.sampled_from(list(ELEMENT_TYPES))),
        ", shape =",
        shape,
        ",",
        place,
        quantised,
    )
    return st.one_of(whole, whole, concat("type =", one(plain_names), quantised))


def _per_axis(numbers: Strategy) -> tuple[Strategy, Strategy]:
    items = concat("[", st.one_of(comma_list(numbers), long_lists), "]")
    values = st.one_of(items, one(names))
    return concat("scales =", values), concat("zero_points =", values)


type_attributes = _types(expressions)
_bits, _tables = concat("bits =", signed), concat("tables =", signed)
compression = st.one_of(
    concat(", compressed = sparse"),
    concat(", compressed = palette (", st.one_of(_bits, all_of(_bits, _tables)), ")"),
)
region_types = concat(type_attributes, maybe(compression))
_bounds = concat(one(names), ",", expressions, ",", expressions)
regions = st.one_of(
    concat("region (", _bounds, ")"),
    concat("region (", _bounds, ")", region_types),
    concat("region (", _bounds, ",", region_types, ")"),
)


def _list_of(inner: Strategy) -> Strategy:
    return concat("[", st.one_of(st.just([]), comma_list(inner), long_lists), "]")


booleans = one(st.sampled_from(["true", "false"]))
flat_values = st.one_of(expressions, one(strings), booleans)
values = st.recursive(st.one_of(flat_values, regions), _list_of, max_leaves=4)
# `NAME = region(` always begins a statement, so no attribute holds a region, but a list may.
attribute_values = st.one_of(flat_values, _list_of(values))

units = concat(one(st.sampled_from(list(UNITS))), "[", expressions, "]")
decorator_names = st.one_of(
    st.sampled_from(["materialized", "readonly", "resource", "max_in_flight", "debug"]), names
)
decorator = concat(
    "@", one(decorator_names), maybe(concat("(", comma_list(st.one_of(units, values), 0, 2), ")"))
)
decorators = sequence(decorator, 2)


# Statements

buffers = concat(
    "buffer", one(names), ":",
    st.one_of(one(st.sampled_from(["DDR", "L2", "L1"])), concat("L1 [", expressions, "]")),
    "(",
    st.one_of(concat("size =", expressions),
              all_of(concat("size =", expressions), concat("align =", one(integers)))),
    ")", decorators,
)  # fmt: skip
region_declarations = concat(one(names), "=", regions, decorators)
lets = concat("let", one(names), "=", st.one_of(values, type_attributes), decorators)
constants = concat("const", one(names), "=", expressions)
waits = concat("wait (", name_lists, ")")
token = maybe(concat(one(names), "="))
dependences = concat("deps = [", name_lists, "]")


def _operands(of_names: st.SearchStrategy[str]) -> Strategy:
    return concat(st.one_of(one(of_names), regions), decorators)


def _copies() -> Strategy:
    words = [f"{op}.{form}" for op in ("transfer", "store") for form in ("async", "sync")]
    sides = (concat("dst =", _operands(names)), concat("src =", _operands(names)))
    arguments = st.one_of(all_of(*sides), all_of(*sides, dependences))
    return concat(token, one(st.sampled_from(words)), "(", arguments, ")", decorators)


def _attributes() -> Strategy:
    pairs = st.lists(
        st.tuples(attribute_names, attribute_values), max_size=3, unique_by=lambda pair: pair[0]
    ).map(lambda found: joined([[name, "=", *value] for name, value in found], ""))
    return st.one_of(pairs, all_of(pairs, dependences, separator=""))


def _computes() -> Strategy:
    opcodes = st.sampled_from([op for op in OPCODES if op not in ("transfer", "store")])
    words = st.tuples(opcodes, st.sampled_from(["async", "sync"])).map(".".join)
    return concat(
        token, one(words),
        one(st.sampled_from(["in", "IN"])), comma_list(_operands(operand_names)),
        one(st.sampled_from(["out", "OUT"])), comma_list(_operands(operand_names), 1, 2),
        _attributes(), decorators,
    )  # fmt: skip


simple_statements = st.one_of(
    buffers, region_declarations, lets, constants, waits, _copies(), _computes()
)
loop_headers = concat(
    "loop", one(names), "in [", expressions, "..", expressions, "]", decorators, ":"
)

Chunks = list[Tokens]


def _flat(parts: Sequence[Chunks]) -> Chunks:
    return [chunk for part in parts for chunk in part]


def _loop_around(inner: st.SearchStrategy[Chunks]) -> st.SearchStrategy[Chunks]:
    return st.tuples(loop_headers, st.lists(inner, max_size=2)).map(
        lambda p: [p[0], *_flat(p[1]), ["endloop"]]
    )


statements = st.recursive(simple_statements.map(lambda s: [s]), _loop_around, max_leaves=3)
bodies = st.lists(statements, max_size=4).map(_flat)


# Config documents

element_names = one(st.sampled_from(list(ELEMENT_TYPES)))
angle_types = concat("<", comma_list(element_names), ">")
bound_types = one(
    st.sampled_from(["T", "T_out", "absent", "any_supported", "quantity", *ELEMENT_TYPES])
)
# `variants:` ends the bindings, so no operand is called that.
binding = concat(one(names.filter(lambda n: n != "variants")), ":", bound_types)
attribute_binding = concat(
    one(names), "=", one(st.sampled_from(["f32", "required", "absent", "i32"])),
    maybe(concat("on", one(plain_names))),
)  # fmt: skip
variant = concat(
    one(names), ": {", sequence(binding, 2), "} conformance : {",
    sequence(concat(one(st.sampled_from(["MUST", "MAY"])), maybe(angle_types))), "}",
)  # fmt: skip
type_parameter = concat(
    one(st.sampled_from(["T", "T_out", "on"])), ": {", comma_list(element_names), "}"
)
families = concat(
    "type_family", one(st.sampled_from(["gemm.float", "eltwise", "wait.in", "loop", "view"])),
    maybe(concat("<", comma_list(type_parameter, 1, 2), ">")), "{",
    sequence(binding), sequence(attribute_binding, 2), "variants :", sequence(variant), "}",
)  # fmt: skip


def _counts(known: Sequence[str]) -> Strategy:
    pairs = st.lists(st.tuples(st.sampled_from(known), integers), unique_by=lambda p: p[0])
    return pairs.map(lambda found: joined([[name, "=", count] for name, count in found], ""))


def _per_engine() -> Strategy:
    size = concat("l1_size_bytes =", expressions)
    return concat("per_engine {", some_of(_counts(ENGINE_UNITS), size), "}")


topologies = concat(
    "topology {",
    some_of(
        concat("num_engines =", one(integers)),
        concat("l2_size_bytes =", expressions),
        concat("device_units {", _counts(DEVICE_UNITS), "}"),
        _per_engine(),
    ),
    "}",
)
characteristic_groups = st.lists(
    st.tuples(
        st.sampled_from(list(UNITS)),
        st.lists(st.tuples(names, signed), max_size=3, unique_by=lambda p: p[0]),
    ),
    max_size=2,
    unique_by=lambda p: p[0],
).map(
    lambda groups: joined(
        [
            [unit, "{", *joined([[key, "=", *value] for key, value in entries], ""), "}"]
            for unit, entries in groups
        ],
        "",
    )
)
variant_refs = st.one_of(
    one(st.sampled_from(["cast.default", "a.b.c"])),
    concat(one(st.sampled_from(["eltwise", "gemm.int8"])), angle_types, ".", one(plain_names)),
)
device_configs = concat(
    "device", one(names), maybe(concat("extends", one(names))), "{",
    some_of(
        concat("spec_version =", one(strings)),
        topologies,
        concat("unit_characteristics {", characteristic_groups, "}"),
        concat("opcode.mandatory {", sequence(variant_refs), "}"),
        concat("opcode.extended {", sequence(variant_refs), "}"),
    ),
    "}",
)  # fmt: skip


# Documents


@dataclass(frozen=True)
class Drawn:
    """The chunks of a document: what stands before the first statement, then the statements."""

    head: Chunks
    body: Chunks


_includes = st.lists(concat("include", one(strings)), max_size=2)
_device = st.one_of(concat("device", one(strings)), concat("device", one(names)), device_configs)
_header = concat("program", one(names), ":")


def _up_to_one(part: Strategy) -> st.SearchStrategy[Chunks]:
    return st.lists(part, max_size=1)


drawn_programs = st.builds(
    Drawn, st.tuples(_includes, _up_to_one(_device), _up_to_one(_header)).map(_flat), bodies
)
drawn_configs = st.builds(
    Drawn,
    st.tuples(_includes, st.lists(st.one_of(families, device_configs), max_size=2)).map(_flat),
    st.just([]),
)


# Layout

_GAPS = (" ",) * 14 + ("",) * 5 + ("  ", "\t", "\n", "\n  ", "\r\n", "\n\n\n", " \t\n\t")
_BREAKS = ("\n",) * 8 + ("\n\n", "\r\n", " ", "\n\n\n\n", "\t")
_COMMENTS = (" #{}\n", "\n  #{}\n", "\n\n#{}\r\n\n", "#{}\n\n", " # one\n #{}\n")
_COMMENT_TEXTS = (" c", "", '" @(', "# x #", " é学 \t", "; const X = 1", "\x0b")
_WORDLIKE = re.compile(r"\w")


@dataclass
class _Writer:
    """Puts tokens and gaps together; every comment gets a number, so that all of them differ."""

    with_comments: bool
    text: str = ""
    comments: int = 0

    def gap(self, data: st.DrawFn, kinds: Sequence[str], following: str) -> None:
        """Write what stands before the token `following`."""
        kinds = (*kinds, *_COMMENTS) if self.with_comments else kinds
        gap = data(st.sampled_from(kinds))
        if isinstance(following, Held) and ("\n" in gap or not gap):
            gap = " "
        if "#" in gap:
            self.comments += 1
            gap = gap.format(f"{self.comments}{data(st.sampled_from(_COMMENT_TEXTS))}")
        needs_gap = _WORDLIKE.match(following) and _WORDLIKE.match(self.text[-1:])
        self.text += " " if not gap and needs_gap else gap


@st.composite
def _written(draw: st.DrawFn, drawn: st.SearchStrategy[Drawn], with_comments: bool) -> str:
    writer = _Writer(with_comments)
    document = draw(drawn)
    for index, chunk in enumerate([*document.head, *document.body]):
        if index > len(document.head) and draw(st.integers(0, 5)) == 5:
            writer.gap(draw, _BREAKS, ";")
            writer.text += ";"
        writer.gap(draw, _BREAKS if index else ("", "\n", "\n\n"), chunk[0])
        writer.text += chunk[0]
        for token_text in chunk[1:]:
            writer.gap(draw, _GAPS, token_text)
            writer.text += token_text
    writer.gap(draw, ("\n", "", "\n\n", " "), "")
    return writer.text


programs = _written(drawn_programs, with_comments=False)
configs = _written(drawn_configs, with_comments=False)
documents = st.one_of(programs, configs)
commented_documents = st.one_of(
    _written(drawn_programs, with_comments=True), _written(drawn_configs, with_comments=True)
)


def on_one_line(chunk: Tokens) -> str:
    """The tokens of a chunk with single blanks between them."""
    return " ".join(chunk)


# A program with each statement, loop header and `endloop` on a line of its own.
lines_of_programs = st.lists(statements, min_size=2, max_size=5).map(
    lambda parts: [chunk for part in parts for chunk in part]
)


# Programs whose clauses are short but many: whatever is too wide for a line can be broken.


def _numbered(prefix: str) -> st.SearchStrategy[str]:
    return st.integers(1, 60).map(lambda n: ", ".join(f"{prefix}{i}" for i in range(n)))


_short_types = st.sampled_from(
    ["", " elem=f16, shape=[1, 64, 64, 128], layout=NHWC", " elem=i8, shape=[n, 4], strides=[n, 1]"]
)
_short_regions = st.tuples(
    st.sampled_from(["region(X_L1, (i mod 2) * tile_bytes, tile_bytes)", "region(B, 0, n)"]),
    _short_types,
    st.sampled_from(["", " @materialized", " @readonly @debug(tile)"]),
).map("".join)
_short_operands = st.one_of(st.just("Y_tile"), _short_regions)
_quantised = st.tuples(_numbered("0.0"), _numbered("-")).map(
    lambda p: (
        f"w = region(W, 0, 4) elem=i8, shape=[4], layout=C,"
        f" quant=per_group(axis=0, group_size=32, scales=[{p[0]}], zero_points=[{p[1]}])"
    )
)
_wide_statements = st.one_of(
    _numbered("item").map(lambda items: f"let x = [{items}] @debug(x)"),
    _numbered("t").map(lambda tokens: f"wait({tokens})"),
    _quantised,
    st.tuples(_short_operands, _short_operands, _numbered("t")).map(
        lambda p: f"token = transfer.async(dst={p[0]}, src={p[1]}, deps=[{p[2]}]) @seq_engine(0)"
    ),
    st.tuples(
        st.lists(_short_operands, min_size=1, max_size=4).map(", ".join), _short_operands,
        _numbered("t"), _numbered("1"),
    ).map(
        lambda p: f"token = gemm.async in {p[0]} out {p[1]} deps=[{p[2]}] pads=[{p[3]}]"
        " accum_type=f32 @resource(NMU[0]) @deterministic"
    ),
)  # fmt: skip


def _wrapped(statement: str, depth: int) -> str:
    return "loop i in [0..T - 1]:\n" * depth + statement + "\nendloop" * depth


wide_programs = st.lists(
    st.tuples(_wide_statements, st.integers(0, 4)).map(lambda p: _wrapped(*p)), max_size=3
).map("\n".join)
