"""The best figures of all starts: descents from several, sizes tried one by one, integers nearby.

Times do not change smoothly with the size of something that hardware does at once: no slope says
that 16 is better than 24. Such figures are held in descents, and tried at powers of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from nacre.base.stages import stage
from nacre.calibrate.free_figures import FreeFigure
from nacre.calibrate.least_squares import Problem, descend
from nacre.calibrate.timed_rows import Values

_STARTS = 4
_SCAN = 8  # places of a range that are tried, one figure at a time
_DRAWN = 12  # places that are looked at for one that a descent starts from
_LEADING = 2  # starts whose sizes are tried
_TRIED_SIZES = 3  # of a figure, each with a short descent
_SHORT = 6  # steps of such a descent
_GAIN = 1e-4  # what a better value must win, as a share
_FINEST = 256  # figures are polished to this share of them, which no measurement can tell
_MOST_ROUNDS = 4  # of going through all figures


def fit_values(problem: Problem, starts: int | None, seed: int) -> Values:
    """The best integers that are found from any of the starts.

    Where one timing of all rows takes seconds, slopes are all that leads: no place of a range is
    tried for its own sake, and no integer beside the one that a descent ends at.
    """
    is_costly = problem.rows.is_costly
    usual = 1 if is_costly else _STARTS
    first = starting_values(problem, usual if starts is None else max(1, starts), seed)
    found: list[Values] = []
    with stage("fitting", "starts", lambda: (len(found), len(first))):
        for start in first:
            found.append(descend(problem, start))
    leading = sorted(set(found), key=problem.loss)[:_LEADING]
    best = min((_search_sizes(problem, values) for values in leading), key=problem.loss)
    if is_costly:
        return best
    elsewhere = _scan(problem, best)
    return polish(problem, best if elsewhere == best else descend(problem, elsewhere))


def refit_values(problem: Problem, found: Values) -> Values:
    """The best figures of other rows, from those that were found for all: sizes are tried anew."""
    return _search_sizes(problem, descend(problem, found))


def starting_values(problem: Problem, count: int, seed: int) -> list[Values]:
    """What the device has, then places all over the ranges at which times are most alike.

    Ranges are taken by their logarithms.
    """
    rng = np.random.default_rng(seed)
    free = problem.free
    known = tuple(f.first for f in free)
    if count == 1:
        return [known]
    middle = tuple(_size_near(f, _place_value(f, 0.5)) for f in free)
    drawn = [
        tuple(_size_near(f, _place_value(f, float(rng.random()))) for f in free)
        for _ in range(_DRAWN * (count - 2))
    ]
    return [known, middle, *sorted(drawn, key=problem.scale_free_loss)[: count - 2]]


def _place_value(figure: FreeFigure, share: float) -> int:
    low, high = (figure.ladder_position(value) for value in figure.start_range)
    return round(figure.value(low + share * (high - low)))


def _size_near(figure: FreeFigure, value: int) -> int:
    """A size as hardware has them; other figures as they are."""
    powers = _powers_of_two(figure)
    return min(powers, key=lambda power: abs(power - value)) if figure.is_size and powers else value


def _powers_of_two(figure: FreeFigure) -> list[int]:
    low, high = figure.start_range
    return [1 << bit for bit in range(high.bit_length()) if low <= 1 << bit <= high]


def _search_sizes(problem: Problem, values: Values) -> Values:
    """Sizes that are better once the other figures have followed; one after the other."""
    best, loss = values, problem.loss(values)
    places = [place for place, figure in enumerate(problem.free) if figure.is_size]
    for _ in range(_MOST_ROUNDS if len(problem.movable) < len(problem.free) else 0):
        before = loss
        for place in places:
            tried = list(_with_other_values(best, place, _powers_of_two(problem.free[place])))
            for start in sorted(tried, key=problem.scale_free_loss)[:_TRIED_SIZES]:
                found = descend(problem, start, _SHORT)
                if problem.loss(found) < loss * (1 - _GAIN):
                    best, loss = found, problem.loss(found)
        if loss >= before * (1 - _GAIN):
            break
    return descend(problem, best) if best != values else best


def _with_other_values(values: Values, place: int, tried: Iterable[int]) -> Iterator[Values]:
    return ((*values[:place], value, *values[place + 1 :]) for value in tried)


def _scan(problem: Problem, values: Values) -> Values:
    """Whether another place of one range is better."""
    best, loss = values, problem.loss(values)
    for place, figure in enumerate(problem.free):
        values_tried = {_place_value(figure, at / (_SCAN - 1)) for at in range(_SCAN)}
        if figure.is_size:
            values_tried |= set(_powers_of_two(figure))
        for tried in _with_other_values(best, place, sorted(values_tried)):
            found = problem.loss(tried)
            if found < loss * (1 - _GAIN):
                best, loss = tried, found
    return best


def polish(problem: Problem, values: Values) -> Values:
    """The best integers nearby: steps that halve, one figure at a time."""
    best, loss = values, problem.loss(values)
    for _ in range(_MOST_ROUNDS):
        before = loss
        for place, figure in enumerate(problem.free):
            step, least = max(1, best[place] // 16), max(1, best[place] // _FINEST)
            while step >= least:
                ends = (best[place] + step, best[place] - step)
                inside = [end for end in ends if figure.low <= end <= figure.high]
                moved = [(problem.loss(m), m) for m in _with_other_values(best, place, inside)]
                found = min(moved, default=(loss, best))
                if found[0] < loss * (1 - _GAIN / 10):
                    loss, best = found
                else:
                    step //= 2
        if loss >= before * (1 - _GAIN):
            break
    return best
