"""Write the reference page on the operations of Core IR from its table.

usage: python -m tools.generate_operations [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from nacre.core.ops import OPS
from nacre.core.specs import CLASS_WORDS, AttributeSpec, OpSpec
from nacre.core.text.operations import value_text
from tools.generated import ROOT, write_or_check

PAGE = ROOT / "docs" / "reference" / "operations.md"

HEAD = """# Operations of Core IR

Generated from the table in `src/nacre/core/op_table` by `make docs`: change that, not this page.

An operand in brackets may be left out, one with dots may be repeated. An attribute with `=` has
that default. Element types: {classes}; `same` is that of the first operand, or of the first one of
any type. `ATen` names the PyTorch operations of the same meaning: equal within the last bits of
floats, except where PyTorch gives NaN for an infinity or for a product that overflows on the way.
`Silu`, `HardSwish` and `Gelu` are -0.0 at -inf, their limit, and infinite at inf.
"""
TITLES = {"core-v1": "The profile `core-v1`", "nacre-1": "What `nacre-1` adds"}


def render_operations() -> str:
    """The text of the page."""
    words = ", ".join(f"`{name}` {text}" for name, text in CLASS_WORDS.items())
    parts = [HEAD.format(classes=words)]
    for profile, title in TITLES.items():
        parts.append(f"## {title}\n")
        rows = [spec for spec in OPS.values() if spec.profile == profile]
        parts.append("\n".join(_table(rows)) + "\n")
        parts.append("\n".join(_words(rows)))
    return "\n".join(parts).rstrip() + "\n"


def _table(rows: list[OpSpec]) -> Iterator[str]:
    yield "| operation | operands | attributes | what it computes | ATen |"
    yield "|---|---|---|---|---|"
    for spec in rows:
        cells = (f"`{spec.name}`", _operands(spec), _attributes(spec), spec.summary, _aten(spec))
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _operands(spec: OpSpec) -> str:
    shown = []
    for index, (name, accepts) in enumerate(zip(spec.operands, spec.accepts, strict=True)):
        # Rules of their own judge the operations of the first profile.
        is_plain = spec.profile == "core-v1" or (spec.by_op and index == 0)
        text = name if is_plain else f"{name}: {accepts}"
        text = f"{text}.." if spec.most is None else text
        shown.append(f"[{text}]" if index >= spec.least else text)
    return ", ".join(shown)


def _attributes(spec: OpSpec) -> str:
    return ", ".join(f"`{_attribute(a)}`" for a in spec.attributes)


def _attribute(attribute: AttributeSpec) -> str:
    if attribute.is_required:
        return attribute.name
    default = attribute.default
    is_word = attribute.kind == "word"
    return f"{attribute.name}={default if is_word else value_text(default)}"


def _aten(spec: OpSpec) -> str:
    return ", ".join(f"`{call}`" for call in spec.aten.get("", ()))


def _words(rows: list[OpSpec]) -> Iterator[str]:
    """Operations that `op` chooses, and other words."""
    for spec in rows:
        for attribute in spec.attributes:
            if attribute.name == "op" and attribute.choices:
                yield f"### `{spec.name}`\n"
                yield "| `op` | for | ATen |"
                yield "|---|---|---|"
                for word in attribute.choices:
                    calls = spec.aten.get(word) or spec.aten.get("", ())
                    shown = ", ".join(f"`{call}`" for call in calls)
                    yield f"| `{word}` | {CLASS_WORDS[spec.accepted_types(0, word)]} | {shown} |"
                yield ""
            elif attribute.kind == "word" and attribute.choices:
                choices = ", ".join(f"`{word}`" for word in attribute.choices)
                yield f"`{attribute.name}` of `{spec.name}`: {choices}\n"


def main(arguments: list[str]) -> int:
    """Write the page if it is stale, or with --check only say so; the exit status."""
    return write_or_check({PAGE: render_operations()}, arguments, (__doc__ or "").splitlines()[0])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
