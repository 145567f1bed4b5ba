"""Other sizes of planes."""

from __future__ import annotations

from math import floor

from nacre.core.aten.call import AtenCall
from nacre.core.aten.table import handles
from nacre.core.unsupported import Unsupported

_FORMS = tuple(
    f"{name}.{overload}"
    for name in (
        *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
        *(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)),
        "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
        "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
    )
    for overload in ("vec", "default")
)  # fmt: skip


@handles(*_FORMS)
def upsample(call: AtenCall) -> int:
    """Another size, by neighbours or by interpolation."""
    source = "input" if "input" in call.names else "self"
    x, dims = call.value(source), call.shape_of(source)
    factors = _factors(call)
    sizes = _sizes(call, dims, factors)
    given: dict[str, object] = {"sizes": sizes, "scales": _scales(dims, sizes, factors)}
    if "nearest" in call.name:
        is_exact = "exact" in call.name
        given["coordinate"] = "half_pixel" if is_exact else "asymmetric"
        # Halves of exact ones go up: floor(x + 1/2), as floor of a coordinate that is not moved.
        given["rounding"] = "round_prefer_ceil" if is_exact else "floor"
        return call.add("Resize", x, mode="nearest", **given)
    is_cubic, is_soft = "cubic" in call.name, call.name.endswith("_aa")
    given["mode"] = "cubic" if is_cubic else "linear"
    corners = bool(call.get("align_corners", False))
    if is_soft and corners:
        raise Unsupported("it has `antialias` and `align_corners`", "leave one of them out")
    given["coordinate"] = "align_corners" if corners else "half_pixel"
    if is_soft:
        given |= {"antialias": True, "exclude_outside": True}
        if is_cubic:
            given["cubic_a"] = -0.5
    return call.add("Resize", x, **given)


def _factors(call: AtenCall) -> tuple[float, ...]:
    """The scales that are given; none where they follow from the sizes."""
    factors = call.get("scale_factors")
    if factors is None:
        names = [n for n in ("scales", "scales_d", "scales_h", "scales_w") if n in call.names]
        factors = tuple(call.get(n) for n in names)
    if any(not isinstance(f, int | float) or f <= 0 for f in factors):
        if all(f is None for f in factors):
            return ()
        raise Unsupported("a scale is missing, or not above 0")
    return tuple(float(f) for f in factors)


def _sizes(call: AtenCall, dims: tuple[int, ...], factors: tuple[float, ...]) -> tuple[int, ...]:
    wanted = call.integers("output_size")
    if not wanted:
        if not factors or len(factors) > len(dims):
            raise Unsupported("neither a size nor scales are given")
        pairs = zip(dims[-len(factors) :], factors, strict=True)
        wanted = tuple(floor(dim * factor) for dim, factor in pairs)
    if len(wanted) != len(dims) - 2:
        raise Unsupported(f"a size {list(wanted)} for a tensor {list(dims)}")
    return (*dims[:2], *wanted)


def _scales(
    dims: tuple[int, ...], sizes: tuple[int, ...], factors: tuple[float, ...]
) -> tuple[float, ...]:
    """The scales where they are not those of the sizes."""
    exact = tuple(b / a for a, b in zip(dims[2:], sizes[2:], strict=True))
    if not factors or factors == exact:
        return ()
    return (1.0, 1.0, *factors)
