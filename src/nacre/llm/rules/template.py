"""LLM20-LLM22: what a chat template promises."""

from nacre.base.rules import declare

_TEMPLATE = "Language models / Chat template"
_LLM = "LLM"

LLM20 = declare(
    "LLM20", "template-syntax", _TEMPLATE,
    """
    A chat template cannot be read: a tag that nothing ends, an expression that is none, or a part
    of Jinja that is left out on purpose, such as macros, imports and calls of anything but what
    templates for chats need. The message names it and its line.
    """, language=_LLM)  # fmt: skip
LLM21 = declare(
    "LLM21", "template-run", _TEMPLATE,
    """
    A chat template does not take these messages: it says so itself, asks for what is not there, or
    computes with values of other types.
    """, language=_LLM)  # fmt: skip
LLM22 = declare(
    "LLM22", "template-limit", _TEMPLATE,
    """
    A chat template takes more steps, writes more text or lies deeper than any template needs. It is
    a program of whoever made the file.
    """, language=_LLM)  # fmt: skip
