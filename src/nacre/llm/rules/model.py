"""LLM01-LLM07: what a model in a file promises."""

from nacre.base.rules import declare

_MODEL = "Language models / Model"
_LLM = "LLM"

LLM01 = declare(
    "LLM01", "architecture-unknown", _MODEL,
    """
    `general.architecture` is missing, or names a family of models that is not built.
    """, language=_LLM)  # fmt: skip
LLM02 = declare(
    "LLM02", "model-key", _MODEL,
    """
    A key that the architecture needs is missing, or its value cannot be: of another type, 0, or one
    that does not fit the others.
    """, language=_LLM)  # fmt: skip
LLM03 = declare(
    "LLM03", "weight-missing", _MODEL,
    """
    A tensor that the architecture needs is missing, or has another shape than the keys say.
    """, language=_LLM)  # fmt: skip
LLM04 = declare(
    "LLM04", "weight-unused", _MODEL,
    """
    The file has tensors that the architecture, as it is built here, does not use. A model without
    some of its weights is another model.
    """, language=_LLM)  # fmt: skip
LLM05 = declare(
    "LLM05", "model-feature", _MODEL,
    """
    The model has a feature that is not built, such as experts, a part of its weights in another
    file, or a scaling of rotary positions; the message names it.
    """, language=_LLM)  # fmt: skip
LLM06 = declare(
    "LLM06", "context-size", _MODEL,
    """
    The context or the chunk that was asked for cannot be: below 1, or a context that is smaller
    than the chunk or larger than the positions that the model knows; nor can a batch below 1, or
    as many tokens of a draft as the context has.
    """, language=_LLM)  # fmt: skip
LLM07 = declare(
    "LLM07", "context-full", _MODEL,
    """
    A prompt is longer than the context, or empty where nothing begins a text.
    """, language=_LLM)  # fmt: skip
LLM08 = declare(
    "LLM08", "bundle-broken", "Language models / Bundle",
    """
    A folder is no bundle of a language model: a part of it is missing, says something that cannot
    be, or does not belong to the others.
    """, language=_LLM)  # fmt: skip
LLM09 = declare(
    "LLM09", "bundle-request", "Language models / Bundle",
    """
    A bundle was asked for what it is not made for: a precision that needs data, a context other
    than that of its plans, several texts at once, or to check the tokens of a draft without a plan
    for that; or the draft has other tokens, or is for another device.
    """, language=_LLM)  # fmt: skip
