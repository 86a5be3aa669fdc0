"""Trials as text and as Markdown."""

from collections.abc import Iterable, Sequence

from measured.truth.ratio import Ratio
from measured.truth.summary import summary
from measured.truth.trials import Trial

NOTHING = "–"
# Title and width of each column of text; the first two stand left.
COLUMNS = (
    ("program", 20),
    ("kind", 14),
    ("predicted", 9),
    ("interval", 15),
    ("user", 6),
    ("95 %", 15),
    ("error", 6),
    ("held", 4),
    ("wall", 6),
    ("95 %", 15),
    ("huge", 5),
    ("verdict", 12),
    ("seconds", 7),
)
LEFT = 2
LEGEND = (
    "predicted: by `analyze`, how many times as fast with huge pages; seconds: what that took. user, wall: by "
    "`compare`, medians, base over thp. error: predicted less user, in points. held: whether the predicted interval "
    "holds the measured median of user time. huge: share of memory in huge pages in thp."
)


def cells(trial: Trial) -> list[str]:
    """A trial's values, one a column."""
    predicted, measured = trial.predicted, trial.measured
    error, held = trial.error_points(), trial.held()
    return [
        trial.name,
        trial.kind,
        number(predicted.ratio),
        interval(predicted.ratio),
        number(measured.user),
        interval(measured.user),
        NOTHING if error is None else f"{error:+.1f}",
        NOTHING if held is None else ("yes" if held else "no"),
        number(measured.wall),
        interval(measured.wall),
        NOTHING if measured.huge_share is None else f"{100 * measured.huge_share:.0f} %",
        predicted.verdict or NOTHING,
        f"{predicted.seconds:.0f}",
    ]


def number(ratio: Ratio | None) -> str:
    """The ratio itself."""
    return NOTHING if ratio is None or ratio.value is None else f"{ratio.value:.3f}"


def interval(ratio: Ratio | None) -> str:
    """From where to where."""
    return NOTHING if ratio is None else f"{ratio.low:.3f} – {ratio.high:.3f}"


def line(texts: Sequence[str]) -> str:
    """A row of the text."""
    pairs = zip(texts, COLUMNS, strict=True)
    parts = [f"{text:<{wide}}" if n < LEFT else f"{text:>{wide}}" for n, (text, (_, wide)) in enumerate(pairs)]
    return "  ".join(parts).rstrip()


def head() -> str:
    """The columns' titles."""
    return line([title for title, _ in COLUMNS])


def markdown(trials: Sequence[Trial], left_out: Sequence[str], conditions: Sequence[str], command: str) -> str:
    """A page of the book."""
    return "\n".join(
        [
            "# What `analyze` predicts of huge pages, and what is measured",
            "",
            f"Made by `{command}`.",
            "",
            *bullets(conditions),
            "",
            row([title for title, _ in COLUMNS]),
            row(["---"] * LEFT + ["---:"] * (len(COLUMNS) - LEFT)),
            *(row(cells(trial)) for trial in trials),
            "",
            LEGEND,
            "",
            *bullets(summary(trials)),
            *([""] if left_out else []),
            *bullets(f"left out: {one}" for one in left_out),
            "",
        ]
    )


def bullets(lines: Iterable[str]) -> list[str]:
    """A list."""
    return [f"- {line}" for line in lines]


def row(texts: Sequence[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(texts)} |"
