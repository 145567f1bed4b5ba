"""The names of the templates, for those who only need to list them."""

from __future__ import annotations

from typing import Final

TEMPLATE_NAMES: Final = ("gemm", "conv2d", "attention")
