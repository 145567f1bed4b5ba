"""LLM30-LLM32: decoders that come as graphs of ONNX."""

from nacre.base.rules import declare

_GRAPH = "Language models / Graph"
_LLM = "LLM"

LLM30 = declare(
    "LLM30", "graph-interface", _GRAPH,
    """
    Inputs and outputs of an ONNX model are not those of a decoder with a cache: tokens, what is
    known of places, and for every layer keys and values that were and that will be.
    """, language=_LLM)  # fmt: skip
LLM31 = declare(
    "LLM31", "graph-cache", _GRAPH,
    """
    An ONNX model does something with its cache, with places or with masks that cannot be computed
    apart for rows that are there and for new ones; the message names it.
    """, language=_LLM)  # fmt: skip
LLM32 = declare(
    "LLM32", "graph-differs", _GRAPH,
    """
    A step that was made of an ONNX model gives other numbers than the model: what it computes
    depends on the length of its cache in a way that was not understood.
    """, language=_LLM)  # fmt: skip
