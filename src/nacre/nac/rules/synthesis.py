"""NAC56-NAC59: networks that are to be made."""

from nacre.base.rules import declare

_GENERATION = "NAC / NAC for generative AI and knowledge transfer"
_NAC = "NAC"

NAC56 = declare(
    "NAC56", "nothing-learned", _GENERATION,
    """
    A grammar cannot be learned from the files that were given: none has blocks that are known, one
    behind the other, from its input on. A file with several inputs, or whose input is no image, no
    sequence of vectors and no vector, teaches nothing; one of which a part is not known teaches the
    rest.
    """, language=_NAC)  # fmt: skip
NAC57 = declare(
    "NAC57", "budget", _GENERATION,
    """
    No network of the grammar meets what was asked: so few parameters, so few products, or an input
    on which none of its blocks can stand. Widths, repetitions and stages are reduced before this is
    said; the message has the smallest network that there is.
    """, language=_NAC)  # fmt: skip
NAC58 = declare(
    "NAC58", "grammar-file", _GENERATION,
    """
    A file is no grammar: no JSON of the form that `nacre nac grammar` writes, a block or a setting
    that is not known, a value outside of its range, a count that is no positive integer.
    """, language=_NAC)  # fmt: skip
NAC59 = declare(
    "NAC59", "training-data", _GENERATION,
    """
    Data to train with does not fit: no arrays `images` and `labels`, both `images` and `inputs`, of
    different lengths, of other types than numbers and integers, with labels below 0 or more classes
    than there may be, or too few examples of them.
    """, language=_NAC)  # fmt: skip
