"""What a token must not see: rows of the cache that are not filled, and tokens after it."""

from __future__ import annotations

import numpy as np

from nacre.core.builder import Builder

# Added to the scores of what a token must not see: e to that power is 0 beside any score, also in
# f16, and no infinity comes near a softmax.
MASKED = -30_000.0


class StepMasks:
    """What is added to scores of a step, `[texts, 1, tokens, context + tokens]`, made once each.

    `position` is that of each text's first token, `places` are those of all tokens.
    """

    def __init__(
        self,
        b: Builder,
        position: int,
        places: int,
        context: int,
        tokens: int,
        texts: int = 1,
    ) -> None:
        self._b, self._position, self._places = b, position, places
        self._context, self._tokens, self._texts = context, tokens, texts
        self._masks: dict[int | None, int] = {}

    def of_window(self, window: int | None) -> int:
        """That of layers which see so many tokens, their own counted; None: all of them."""
        if window is not None and window >= self._context:
            window = None
        if window not in self._masks:
            old, new = self._old(window), self._new(window)
            self._masks[window] = self._b.add("Concat", old, new, axis=-1)
        return self._masks[window]

    def _old(self, window: int | None) -> int:
        """Rows of the cache before the position are seen, those in the window of a token."""
        b, t, texts = self._b, self._tokens, self._texts
        places = b.constant(np.arange(self._context, dtype=np.int32).reshape(1, -1))
        position = self._reshape(self._position, (texts, 1))
        seen = b.add("Compare", places, position, op="Lt")
        if window is not None:
            reach = b.constant(np.full((1, 1), window, np.int32))
            ends = b.add("BinOp", places, reach, op="Add")
            tokens = self._reshape(self._places, (texts * t, 1))
            in_window = b.add("Compare", ends, tokens, op="Gt")
            seen = b.add("BinOp", seen, in_window, op="And")
        zero = b.constant(np.zeros((1, 1), np.float32))
        masked = b.constant(np.full((1, 1), MASKED, np.float32))
        mask = b.add("Where", seen, zero, masked)
        shape = (texts * t, self._context)
        if b.type_of(mask).shape != shape:
            mask = b.add("Broadcast", mask, shape=shape)
        return self._reshape(mask, (texts, 1, t, self._context))

    def _new(self, window: int | None) -> int:
        """A token sees itself and those of the step before it."""
        distance = np.subtract.outer(np.arange(self._tokens), np.arange(self._tokens))
        is_seen = (distance >= 0) & (distance < (window or self._tokens))
        mask = np.where(is_seen, np.float32(0), np.float32(MASKED))
        shape = (self._texts, 1, *mask.shape)
        return self._b.constant(np.broadcast_to(mask, shape).astype(np.float32))

    def _reshape(self, x: int, shape: tuple[int, ...]) -> int:
        if self._b.type_of(x).shape == shape:
            return x
        return self._b.add("Reshape", x, new_shape=shape)
