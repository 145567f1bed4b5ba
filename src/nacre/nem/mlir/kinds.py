"""What attributes of the dialect hold: kinds, and the dialect's own attributes, made of them.

A kind is what IRDL can say, alternatives of attributes, and what only our own verifier can: what
strings look like, what stands in arrays. Our verifier reads attributes back into the tree, where
every node says what it takes; the kinds here are what upstream's tools are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

TYPES = ("buffer", "region", "token")
OPERATORS: Mapping[str, str] = MappingProxyType(
    {"+": "plus", "-": "minus", "*": "times", "/": "over", "mod": "modulo"}
)


class Kind(Struct, frozen=True):
    """What an attribute may be: attributes of MLIR, attributes of the dialect, single words."""

    builtins: tuple[str, ...] = ()  # string, integer, array, unit
    own: tuple[str, ...] = ()  # attributes of the dialect
    words: tuple[str, ...] = ()  # these strings and no others
    names: tuple[str, ...] = ()  # these names, as `#nem.name`, and no others

    def __or__(self, other: Kind) -> Kind:
        return Kind(
            self.builtins + other.builtins,
            self.own + other.own,
            self.words + other.words,
            self.names + other.names,
        )


STRING = Kind(("string",))
INTEGER = Kind(("integer",))
ARRAY = Kind(("array",))
NOTHING = Kind(("unit",))  # stands for a part that is left out
NAME = Kind(own=("name",))
EXPRESSION = INTEGER | Kind(own=("name", "float", "negated", "paren", *OPERATORS.values()))
VALUE = EXPRESSION | STRING | ARRAY | Kind(own=("area",))
NUMBERS = ARRAY | NAME
SCALES = EXPRESSION | ARRAY
DESCRIPTOR = Kind(own=("per_tensor", "per_channel", "per_group"))
PLAIN_TENSOR = Kind(own=("dense", "strided", "alias"))
TENSOR = PLAIN_TENSOR | Kind(own=("palette", "sparse"))
QUANT = DESCRIPTOR | NAME | NOTHING

# The parameters of each attribute. `area` is a region where no operand can stand: in a list.
ATTRIBUTES: Mapping[str, tuple[tuple[str, Kind], ...]] = MappingProxyType(
    {
        "name": (("name", STRING),),
        "float": (("digits", STRING),),
        "negated": (("operand", EXPRESSION),),
        "paren": (("inner", EXPRESSION),),
        **dict.fromkeys(OPERATORS.values(), (("left", EXPRESSION), ("right", EXPRESSION))),
        "per_tensor": (("scale", SCALES), ("zero_point", SCALES)),
        "per_channel": (("axis", INTEGER), ("scales", SCALES), ("zero_points", SCALES)),
        "per_group": (
            ("axis", INTEGER),
            ("group_size", INTEGER),
            ("scales", SCALES),
            ("zero_points", SCALES),
        ),
        "dense": (("elem", STRING), ("shape", NUMBERS), ("layout", STRING), ("quant", QUANT)),
        "strided": (("elem", STRING), ("shape", NUMBERS), ("strides", NUMBERS), ("quant", QUANT)),
        "alias": (("type", STRING), ("quant", QUANT)),
        # The type of a region that is compressed: what its elements become, and how.
        "palette": (("plain", PLAIN_TENSOR), ("bits", INTEGER), ("tables", INTEGER | NOTHING)),
        "sparse": (("plain", PLAIN_TENSOR),),
        "area": (
            ("buffer", STRING),
            ("offset", EXPRESSION),
            ("extent", EXPRESSION),
            ("type", TENSOR | NOTHING),
        ),
        "unit": (("unit", STRING), ("index", EXPRESSION)),
        "decorator": (("name", STRING), ("arguments", ARRAY | NOTHING)),
        "attribute": (("name", STRING), ("value", VALUE)),
        "parameter": (("name", STRING), ("types", ARRAY)),
        "binding": (("operand", STRING), ("type", STRING)),
        "conformance": (("level", Kind(words=("MUST", "MAY"))), ("types", ARRAY)),
    }
)
