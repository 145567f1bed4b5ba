"""The dialect as an IRDL file, which `mlir-opt --irdl-file` loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nacre.nem.mlir.kinds import ATTRIBUTES, TYPES, Kind
from nacre.nem.mlir.signatures import SIGNATURES, Part, Signature

_HEAD = """\
// The dialect `nem`, written by `nacre nem irdl`. Load it with `mlir-opt --irdl-file`, version 19.
// Bodies end in `omp.terminator`: a definition here cannot say that they need none.
"""


def irdl_text() -> str:
    """The types, attributes and operations of the dialect, in IRDL."""
    lines = [f"irdl.type @{name}" for name in TYPES]
    for name, parameters in ATTRIBUTES.items():
        lines += _attribute(name, [kind for _, kind in parameters])
    for signature in SIGNATURES.values():
        lines += _operation(signature)
    return "\n".join([f"{_HEAD}irdl.dialect @nem {{", *(f"  {line}" for line in lines), "}", ""])


class _Constraints:
    """The constraints of one definition; one that is used twice would ask for equal attributes."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def name(self, text: str) -> str:
        """The name of a new constraint that is written so."""
        self._texts.append(text)
        return f"%{len(self._texts) - 1}"

    def one_of(self, texts: Sequence[str]) -> str:
        """The name of the constraint that takes what any of them takes."""
        names = [self.name(text) for text in texts]
        return names[0] if len(names) == 1 else self.name(f"irdl.any_of({', '.join(names)})")

    def of(self, kind: Kind) -> str:
        """The name of the constraint for a kind."""
        texts = [f'irdl.base "#builtin.{name}"' for name in kind.builtins]
        texts += [f"irdl.base @nem::@{name}" for name in kind.own]
        texts += [_is(word) for word in kind.words]
        if kind.names:  # one of any base: alternatives must differ in it
            words = self.one_of([_is(name) for name in kind.names])
            texts.append(f"irdl.parametric @nem::@name<{words}>")
        return self.one_of(texts)

    def types(self, part: Part) -> str:
        """The name of the constraint for operands or results, with how many there are."""
        name = self.one_of([f"irdl.base @nem::@{type_}" for type_ in part.types])
        return name if part.arity == "single" else f"{part.arity} {name}"

    def lines(self) -> Iterator[str]:
        """The constraints, each before its use."""
        return (f"  %{at} = {text}" for at, text in enumerate(self._texts))


def _is(word: str) -> str:
    return f'irdl.is "{word}"'


def _attribute(name: str, kinds: Sequence[Kind]) -> list[str]:
    constraints = _Constraints()
    names = [constraints.of(kind) for kind in kinds]
    return [
        f"irdl.attribute @{name} {{",
        *constraints.lines(),
        f"  irdl.parameters({', '.join(names)})",
        "}",
    ]


def _operation(signature: Signature) -> list[str]:
    constraints = _Constraints()
    clauses: list[str] = []
    for word, parts in (("operands", signature.operands), ("results", signature.results)):
        if parts:
            clauses.append(f"irdl.{word}({', '.join(constraints.types(part) for part in parts)})")
    # What is left out must not be asked for, and IRDL asks for every attribute that it knows.
    required = [entry for entry in signature.attributes if entry.required]
    if required:
        pairs = ", ".join(f'"{entry.name}" = {constraints.of(entry.kind)}' for entry in required)
        clauses.append(f"irdl.attributes {{{pairs}}}")
    body = ["%body = irdl.region()", "irdl.regions(%body)"] if signature.has_body else []
    return [
        f"// {signature.summary}",
        f"irdl.operation @{signature.name} {{",
        *constraints.lines(),
        *(f"  {clause}" for clause in [*clauses, *body]),
        "}",
    ]
