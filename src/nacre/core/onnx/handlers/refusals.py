"""Operations of ONNX that have no form in Core IR whatever their operands, and why."""

from __future__ import annotations

from math import isnan
from typing import NoReturn

from nacre.core.onnx.findings import (
    BIND,
    BY_ELEMENTS,
    INFERENCE,
    MISFITTING,
    SMALLER,
    TENSORS,
    Unsound,
)
from nacre.core.onnx.folding.sizes import result_size
from nacre.core.onnx.handlers.table import Handler, handles
from nacre.core.onnx.onnx_node import OnnxNode
from nacre.core.unsupported import Unsupported

_RANDOM = "it draws random numbers, which Core IR lacks"
_SEQUENCE = "it works on sequences or optional values; Core IR has tensors only"
_TEXT = "it works on text, which Core IR lacks"
_TRAINING = "it is a step of training; a module is for inference"
_LEARNING = "it is of classical machine learning, which Core IR lacks"

_REASONS = {
    **dict.fromkeys(
        ("NonZero", "NonMaxSuppression", "Unique", "Range", "MelWeightMatrix",
         "HannWindow", "HammingWindow", "BlackmanWindow"), BY_ELEMENTS),
    **dict.fromkeys(
        ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
         "Bernoulli"), _RANDOM),
    **dict.fromkeys(
        ("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
         "SequenceLength", "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional",
         "OptionalGetElement", "OptionalHasElement", "ai.onnx.ml.ZipMap"), _SEQUENCE),
    **dict.fromkeys(
        ("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch"), _TEXT),
    **dict.fromkeys(
        (f"ai.onnx.preview.training.{name}"
         for name in ("Adagrad", "Adam", "Gradient", "Momentum")), _TRAINING),
    **dict.fromkeys(
        (f"ai.onnx.ml.{name}" for name in (
            "CastMap", "CategoryMapper", "DictVectorizer", "FeatureVectorizer", "Imputer",
            "LabelEncoder", "LinearClassifier", "LinearRegressor", "Normalizer", "OneHotEncoder",
            "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble", "TreeEnsembleClassifier",
            "TreeEnsembleRegressor")), _LEARNING),
    "TfIdfVectorizer": "it counts runs of neighbours, which Core IR lacks",
    "ImageDecoder": "it decodes a compressed image",
    "BitCast": "it reads bits as another type, which Core IR lacks",
}  # fmt: skip
_REWRITES = {
    BY_ELEMENTS: BIND,
    _RANDOM: "make the numbers an input",
    _SEQUENCE: TENSORS,
    _TEXT: "turn text into numbers before the model",
    _TRAINING: INFERENCE,
}
_BEFORE = "cut the model behind this node: do it before the model, and make the result an input"
# Domains of operations that onnxruntime makes for the machine that it runs on, at level ALL.
LAYOUTS = frozenset({"com.microsoft.nchwc", "com.ms.internal.nhwc"})
LAYOUT_HELP = "have onnxruntime write the model at the level ORT_ENABLE_EXTENDED"
# Not even on known operands: the result would differ from run to run, or from machine to machine,
# or take a time that only an attribute says.
NEVER_FOLDED = frozenset(
    {name for name, reason in _REASONS.items() if reason == _RANDOM}
    | {"ImageDecoder", "TfIdfVectorizer"}
)


# What can be computed at import only.
FOLDED_ONLY = frozenset(name for name, reason in _REASONS.items() if reason == BY_ELEMENTS)


def _refuse(reason: str) -> Handler:
    def handler(node: OnnxNode) -> NoReturn:
        if node.op in FOLDED_ONLY and node.is_known:
            if isnan(result_size(node.source, [node.known(i) for i in range(node.count)])):
                raise Unsound(MISFITTING)
            raise Unsupported("its result is too large to be computed at import", SMALLER)
        raise Unsupported(reason, _REWRITES.get(reason, _BEFORE))

    return handler


for _name, _reason in _REASONS.items():
    handles(_name)(_refuse(_reason))
