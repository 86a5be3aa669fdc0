"""What all trials together say."""

from collections.abc import Sequence
from statistics import median

from measured.truth.trials import WORTH, Trial

NEAR_POINTS = 10


def summary(trials: Sequence[Trial]) -> list[str]:
    """A line for each figure."""
    return [errors(trials), near(trials), intervals(trials), widest(trials), missed(trials)]


def errors(trials: Sequence[Trial]) -> str:
    """The median error."""
    found = [abs(error) for one in trials if (error := one.error_points()) is not None]
    said = f"{median(found):.1f} points, of {len(found)} programs" if found else "no ratio is predicted"
    return f"median absolute error: {said}"


def near(trials: Sequence[Trial]) -> str:
    """The share of small errors."""
    found = [abs(error) <= NEAR_POINTS for one in trials if (error := one.error_points()) is not None]
    return f"within {NEAR_POINTS} points: {counted(found)}"


def intervals(trials: Sequence[Trial]) -> str:
    """The share of intervals that are right."""
    found = [held for one in trials if (held := one.held()) is not None]
    return f"intervals that hold the measured median: {counted(found)}"


def widest(trials: Sequence[Trial]) -> str:
    """The interval that says least."""
    wide = [(ratio.points(), one.name) for one in trials if (ratio := one.predicted.ratio)]
    said = "no interval is predicted" if not wide else "{:.1f} points ({})".format(*max(wide))
    return f"widest interval: {said}"


def missed(trials: Sequence[Trial]) -> str:
    """The programs that gain, and of which the verdict says that they gain nothing."""
    said = [one for one in trials if one.predicted.verdict == "nothing"]
    names = ", ".join(one.name for one in said if one.missed()) or "none"
    return f"verdict `nothing`, and significantly {WORTH} times or more in user or wall time: {names}, of {len(said)}"


def counted(found: Sequence[bool]) -> str:
    """How many of how many."""
    return f"{sum(found)} of {len(found)} ({100 * sum(found) / len(found):.0f} %)" if found else "none is predicted"
