"""Short-time Fourier transforms, as `torch.stft` and `torch.istft` define them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nacre.core.values import Array
from nacre.nac.operations.element_types import complex_of, inexact, real_of
from nacre.nac.operations.operation import ArrayType
from nacre.nac.operations.table import computes

_PADDED = 'center:b=true pad_mode:s="reflect" '
_HEAD = "self:T n_fft:i hop_length:i? win_length:i? window:T? "
_TAIL = "normalized:b=false onesided:b? return_complex:b? align_to_window:b?"


@dataclass(frozen=True)
class _Frames:
    """How a signal is cut: windows of a length, so far from each other."""

    length: int
    hop: int
    window: int

    @staticmethod
    def of(n_fft: int, hop: int | None, window: int | None) -> _Frames:
        """As it is asked for; ValueError where that makes no sense."""
        found = _Frames(
            n_fft, n_fft // 4 if hop is None else hop, n_fft if window is None else window
        )
        if found.length < 1 or found.hop < 1 or not 1 <= found.window <= found.length:
            raise ValueError(
                f"n_fft={found.length}, hop_length={found.hop}, win_length={found.window}"
            )
        return found

    def weights(self, window: Array | None, like: Array) -> Array:
        """The window, in the middle of a frame."""
        given = np.ones(self.window, real_of(like.dtype)) if window is None else window
        if given.shape != (self.window,):
            raise ValueError(f"a window {list(given.shape)}, expected [{self.window}]")
        left = (self.length - self.window) // 2
        return np.pad(given, (left, self.length - self.window - left))

    def bins(self, is_half: bool) -> int:
        """How many frequencies there are."""
        return self.length // 2 + 1 if is_half else self.length


@dataclass(frozen=True)
class _Transform:
    """What `stft` is asked for, in the order of its arguments behind the signal."""

    n_fft: int
    hop_length: int | None
    win_length: int | None
    window: Array | None
    center: bool
    pad_mode: str
    normalized: bool
    onesided: bool | None
    return_complex: bool | None
    align_to_window: bool | None

    @staticmethod
    def uncentred(n_fft: int, hop: int | None, win: int | None, window: Array | None,
                  *rest: bool | None) -> _Transform:  # fmt: skip
        """The same for the call that pads nothing."""
        return _Transform(n_fft, hop, win, window, False, "", *rest)  # type: ignore[arg-type]

    @property
    def frames(self) -> _Frames:
        return _Frames.of(self.n_fft, self.hop_length, self.win_length)

    def _is_complex(self, x: Array) -> bool:
        return x.dtype.kind == "c" or (self.window is not None and self.window.dtype.kind == "c")

    def _is_half(self, x: Array) -> bool:
        return not self._is_complex(x) if self.onesided is None else self.onesided

    def _returns_complex(self, x: Array) -> bool:
        return self._is_complex(x) if self.return_complex is None else self.return_complex

    def shape(self, x: Array) -> ArrayType:
        """The type of the spectra; ValueError where a signal has none."""
        frames, n_fft = self.frames, self.n_fft
        length = x.shape[-1] + (2 * (n_fft // 2) if self.center else 0)
        if x.ndim not in (1, 2) or length < n_fft or self.align_to_window:
            raise ValueError(f"a signal {list(x.shape)} in frames of {n_fft}")
        count = 1 + (length - n_fft) // frames.hop
        shape = (*x.shape[:-1], frames.bins(self._is_half(x)), count)
        if self._returns_complex(x):
            return ArrayType(complex_of(x.dtype), shape)
        return ArrayType(real_of(x.dtype), (*shape, 2))

    def spectra(self, x: Array) -> Array:
        """A spectrum for each frame."""
        frames, signal = self.frames, self._padded(inexact(x))
        weights = frames.weights(self.window, x)
        windows = np.lib.stride_tricks.sliding_window_view(signal, self.n_fft, axis=-1)
        cut = windows[..., :: frames.hop, :]
        transform = np.fft.rfft if self._is_half(x) else np.fft.fft
        spectra = transform(cut * weights, axis=-1, norm="ortho" if self.normalized else "backward")
        found: Array = np.swapaxes(spectra, -1, -2).astype(complex_of(x.dtype))
        if self._returns_complex(x):
            return found
        return np.stack([found.real, found.imag], axis=-1)

    def _padded(self, signal: Array) -> Array:
        """With `center` there is something around the signal, so that frames are around it."""
        if not self.center:
            return signal
        around = [(0, 0)] * (signal.ndim - 1) + [(self.n_fft // 2, self.n_fft // 2)]
        mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}[self.pad_mode]
        padded: Array = np.pad(signal, around, mode=mode)  # type: ignore[call-overload]
        return padded


@computes(
    "stft.center",
    schema=_HEAD + _PADDED + _TAIL,
    shape=lambda x, *options: _Transform(*options).shape(x),
)
def stft_centred(x: Array, *options: Any) -> Array:  # noqa: ANN401 - as the schema has them
    """A spectrum for each frame of a signal that may be padded."""
    return _Transform(*options).spectra(x)


@computes(
    "stft.default",
    schema=_HEAD + _TAIL,
    shape=lambda x, *options: _Transform.uncentred(*options).shape(x),
)
def stft(x: Array, *options: Any) -> Array:  # noqa: ANN401 - as the schema has them
    """The same of a signal that is padded already, or not."""
    return _Transform.uncentred(*options).spectra(x)


def _inverse_length(frames: _Frames, count: int, center: bool, length: int | None) -> int:
    if length is not None:
        return length
    return frames.length + frames.hop * (count - 1) - (2 * (frames.length // 2) if center else 0)


def _inverse_shape(
    x: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> ArrayType:
    frames = _Frames.of(n_fft, hop_length, win_length)
    is_half = not return_complex if onesided is None else onesided
    if x.ndim not in (2, 3) or x.dtype.kind != "c" or x.shape[-2] != frames.bins(is_half):
        raise ValueError(f"{x.dtype} {list(x.shape)} are no spectra of frames of {n_fft}")
    size = _inverse_length(frames, x.shape[-1], center, length)
    if size < 1:
        raise ValueError(f"a signal of the length {size}")
    dtype = x.dtype if return_complex else real_of(x.dtype)
    return ArrayType(dtype, (*x.shape[:-2], size))


@computes(
    "istft.default",
    schema=f"{_HEAD}center:b=true normalized:b=false onesided:b? length:i? return_complex:b=false",
    shape=_inverse_shape,
)
def istft(
    x: Array,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: Array | None,
    center: bool,
    normalized: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> Array:
    """The signal whose spectra these are: frames that overlap, by what their windows add up to."""
    frames = _Frames.of(n_fft, hop_length, win_length)
    weights = frames.weights(window, x)
    is_half = not return_complex if onesided is None else onesided
    transform: Callable[..., Array] = np.fft.irfft if is_half else np.fft.ifft
    norm = "ortho" if normalized else "backward"
    made = transform(np.swapaxes(x, -1, -2), n_fft, axis=-1, norm=norm)
    pieces = (made if return_complex else made.real) * weights
    count = x.shape[-1]
    total = n_fft + frames.hop * (count - 1)
    signal = np.zeros((*x.shape[:-2], total), pieces.dtype)
    envelope = np.zeros(total, np.abs(weights).dtype)
    for at in range(count):
        part = slice(at * frames.hop, at * frames.hop + n_fft)
        signal[..., part] += pieces[..., at, :]
        envelope[part] += (weights * np.conj(weights)).real
    start = n_fft // 2 if center else 0
    size = _inverse_length(frames, count, center, length)
    envelope = envelope[start : start + size]
    if np.abs(envelope).min(initial=1.0) <= 1e-11:
        raise ValueError("windows leave a gap: somewhere they add up to 0")
    signal = signal[..., start : start + size] / envelope
    missing = size - signal.shape[-1]
    return np.pad(signal, [(0, 0)] * (signal.ndim - 1) + [(0, missing)])
