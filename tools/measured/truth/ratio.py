"""Ratios with intervals."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

DRAWS = 10_000
FEWEST = 5


@dataclass(frozen=True)
class Ratio:
    """How many times as fast something is, and from where to where that may lie. A bare interval has no value."""

    value: float | None
    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high

    def points(self) -> float:
        """How wide the interval is, in percent points."""
        return 100 * (self.high - self.low)


def of_medians(base: Sequence[float], other: Sequence[float]) -> Ratio:
    """The ratio of two medians, and its 95 % interval by drawing whole rounds, as `compare` does."""
    draw = random.Random(1)
    rounds = range(len(base))
    ratios = []
    for _ in range(DRAWS):
        drawn = draw.choices(rounds, k=len(base))
        ratios.append(divided(median(base[n] for n in drawn), median(other[n] for n in drawn)))
    ratios.sort()
    return Ratio(divided(median(base), median(other)), ratios[DRAWS // 40], ratios[DRAWS - 1 - DRAWS // 40])


def divided(base: float, other: float) -> float:
    """A ratio of times; of times that are too short to be seen, 1."""
    return base / other if other > 0 else 1.0
