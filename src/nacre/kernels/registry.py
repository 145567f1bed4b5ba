"""Every primitive by its name: the opcodes of NEM, and `core.NAME` for the ops of Core IR."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nacre.kernels.call import Primitive
from nacre.kernels.conversion import CONVERSION
from nacre.kernels.convolution import CONVOLUTION
from nacre.kernels.core_ops import CORE_OPS
from nacre.kernels.elementwise import ELEMENTWISE
from nacre.kernels.linear import LINEAR
from nacre.kernels.normalization import NORMALIZATION
from nacre.kernels.pooling import POOLING
from nacre.kernels.reductions import REDUCTIONS
from nacre.kernels.views import VIEWS

_ROWS = (
    *LINEAR,
    *CONVOLUTION,
    *ELEMENTWISE,
    *POOLING,
    *VIEWS,
    *REDUCTIONS,
    *NORMALIZATION,
    *CONVERSION,
    *CORE_OPS,
)

PRIMITIVES: Mapping[str, Primitive] = MappingProxyType({row.name: row for row in _ROWS})
