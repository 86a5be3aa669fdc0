"""One program: predicted, then measured."""

import json
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from measured.truth.programs import Program
from measured.truth.ratio import FEWEST, Ratio, of_medians
from measured.truth.workshop import FailedError, Workshop, last_line

# No prediction and no comparison takes that long, unless it hangs.
LIMIT_SECONDS = 3600
GRACE_SECONDS = 30
# A gain that one would have wanted to be told of.
WORTH = 1.03


@dataclass(frozen=True)
class Predicted:
    """What `analyze` says, and how long it took to say it."""

    ratio: Ratio | None
    verdict: str | None
    seconds: float


@dataclass(frozen=True)
class Measured:
    """What `compare` found: base over huge pages, in user and in wall time."""

    user: Ratio
    wall: Ratio
    rounds: int
    huge_share: float | None


@dataclass(frozen=True)
class Trial:
    """A program's prediction beside its measurement."""

    name: str
    kind: str
    predicted: Predicted
    measured: Measured

    def error_points(self) -> float | None:
        """Predicted less measured, in percent points."""
        ratio, user = self.predicted.ratio, self.measured.user.value
        if ratio is None or ratio.value is None or user is None:
            return None
        return 100 * (ratio.value - user)

    def held(self) -> bool | None:
        """Whether the printed interval holds the measured median."""
        ratio, user = self.predicted.ratio, self.measured.user.value
        return None if ratio is None or user is None else ratio.holds(user)

    def missed(self) -> bool:
        """Whether the verdict is that there is nothing to gain, and there is."""
        both = (self.measured.user, self.measured.wall)
        return self.predicted.verdict == "nothing" and any(self.gains(ratio) for ratio in both)

    def gains(self, ratio: Ratio) -> bool:
        """Whether a measured gain is significant (as `compare` calls it) and worth having."""
        significant = self.measured.rounds >= FEWEST and not ratio.holds(1)
        return significant and ratio.value is not None and ratio.value >= WORTH


def trial(program: Program, shop: Workshop, rounds: int) -> Trial:
    """Predicts and measures, one directly after the other."""
    command = program.command(shop)
    return Trial(program.name, program.kind, predicted(shop, command), measured(shop, command, rounds))


def predicted(shop: Workshop, command: list[str]) -> Predicted:
    """What `analyze` says of a command."""
    began = time.monotonic()
    analysis = said(shop, ["analyze", "-y"], command)
    seconds = time.monotonic() - began
    gain = analysis.get("huge_gain") or {}
    return Predicted(predicted_ratio(gain.get("predicted") or {}), (gain.get("verdict") or {}).get("kind"), seconds)


def predicted_ratio(fields: dict[str, Any]) -> Ratio | None:
    """The ratio with its interval; None where nothing is predicted."""
    low, high = fields.get("least_ratio"), fields.get("most_ratio")
    return None if low is None or high is None else Ratio(fields.get("ratio"), low, high)


def measured(shop: Workshop, command: list[str], rounds: int) -> Measured:
    """What `compare` finds of a command."""
    arguments = ["compare", "--variants", "base,thp", "--metric", "user", "--runs", str(rounds)]
    comparison = said(shop, arguments, command)
    variants = {variant["name"]: variant for variant in comparison["variants"]}
    base, thp = variants["base"], variants["thp"]
    ratio = thp["ratio"]
    if ratio is None:
        raise FailedError("compare gives no ratio")
    return Measured(
        Ratio(ratio["value"], ratio["low"], ratio["high"]),
        of_medians(walls(base), walls(thp)),
        comparison["rounds"],
        share(thp.get("pages")),
    )


def walls(variant: dict[str, Any]) -> list[float]:
    """The seconds of each run, by round."""
    return [run["wall_seconds"] for run in sorted(variant["runs"], key=lambda run: run["round"])]


def share(pages: dict[str, int] | None) -> float | None:
    """The share of a program's memory that lay in huge pages; None if nobody looked in time."""
    return pages["huge_bytes"] / pages["resident_bytes"] if pages and pages["resident_bytes"] else None


def said(shop: Workshop, arguments: list[str], command: list[str]) -> dict[str, Any]:
    """The JSON that Lookaside writes of a command."""
    file = shop.folder / f"{arguments[0]}.json"
    file.unlink(missing_ok=True)
    code, errors = ended([str(shop.lookaside), *arguments, f"--json={file}", "--", *command], shop)
    if code != 0:
        raise FailedError(f"{arguments[0]} ended with {code}: {last_line(errors)}")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FailedError(f"{arguments[0]} wrote no JSON: {error}") from error
    if not isinstance(found, dict):
        raise FailedError(f"{arguments[0]} wrote no JSON object")
    return found


def ended(command: list[str], shop: Workshop) -> tuple[int, str]:
    """The exit code of a command, and what it said of errors. One that takes too long is interrupted."""
    file = shop.folder / "errors"
    with file.open("w", encoding="utf-8") as errors:
        running = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            running.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired as error:
            stop(running)
            raise FailedError(f"{command[1]} took more than {LIMIT_SECONDS} s") from error
        except KeyboardInterrupt:
            stop(running)
            raise
    return running.returncode, file.read_text(encoding="utf-8", errors="replace")


def stop(running: "subprocess.Popen[bytes]") -> None:
    """Ends Lookaside so that it ends the program."""
    running.send_signal(signal.SIGINT)
    try:
        running.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
