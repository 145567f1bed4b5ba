"""What must not take long, on machines that stand still now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

GOES = 3

Given = ParamSpec("Given")
Made = TypeVar("Made")


def in_time(seconds: float) -> Callable[[Callable[Given, Made]], Callable[Given, Made]]:
    """The same function; it fails where several goes in a row take more seconds of CPU time.

    On a shared machine the turns of others can be counted as ours: one slow go says nothing.
    """

    def limited(work: Callable[Given, Made]) -> Callable[Given, Made]:
        @wraps(work)
        def tried(*args: Given.args, **kwargs: Given.kwargs) -> Made:
            taken = []
            for _ in range(GOES):
                start = time.process_time()
                made = work(*args, **kwargs)
                taken.append(time.process_time() - start)
                if taken[-1] < seconds:
                    return made
            raise AssertionError(f"{work.__name__} took {taken} seconds, at most {seconds} are due")

        return tried

    return limited
