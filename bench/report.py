"""The table in text and the same in JSON. Values are medians over the rounds; the figure judged is the median of the rounds' ratios."""

import json
import statistics
from pathlib import Path

from bench.contestants import ORDER
from bench.rounds import Round
from bench.rows import Row

_TITLE = 58


def table(rows: list[Row], rounds: list[Round]) -> str:
    """Every row on a line: what each contestant took, the figure with its spread, the bound, the verdict."""
    head = f"{'':{_TITLE}}" + "".join(f"{name:>10}" for name in ORDER) + f"  {'figure':>20}{'lowest..highest':>17}  {'asked':>7}  verdict"
    lines = [head, "-" * len(head)]
    group = ""
    for row in rows:
        if group and row.name != group:
            lines.append("")
        group = row.name
        lines.append(_line(row, rounds))
    return "\n".join(lines)


def as_json(rows: list[Row], rounds: list[Round], settings: dict[str, object]) -> str:
    """All figures of all rounds, and the rows with their verdicts."""
    judged = []
    for row in rows:
        values = row.figures(rounds)
        judged.append(
            {
                "row": row.name,
                "title": row.title,
                "measure": row.measure,
                "how": row.how,
                "subject": row.subject,
                "reference": row.reference if row.how != "alone" else None,
                "figure": row.summary(values) if values else None,
                "rounds": values,
                "bound": row.bound,
                "at_least": row.at_least,
                "verdict": row.verdict(values),
            }
        )
    told = [{"figures": one.figures, "notes": one.notes} for one in rounds]
    return json.dumps({"settings": settings, "rows": judged, "rounds": told}, indent=1, ensure_ascii=False)


def filesystem(folder: Path) -> str:
    """The kind of file system a folder is on: a durable commit costs nothing on one that lives in memory."""
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    fitting = [(point, kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(fitting, key=lambda mount: len(mount[0]))[1] if fitting else "unknown"


def _line(row: Row, rounds: list[Round]) -> str:
    cells = "".join(f"{_median(row.measure, name, rounds):>10}" for name in ORDER)
    values = row.figures(rounds)
    sign = {"over": "x ", "less": "- ", "alone": ""}[row.how]
    figure = f"{_short(row.summary(values))} {sign}{row.reference if sign else ''}" if values else "-"
    spread = f"{_short(min(values))}..{_short(max(values))}" if values else ""
    asked = "" if row.bound is None else f"{'≥' if row.at_least else '≤'} {row.bound:g}"
    return f"{row.title:{_TITLE}}{cells}  {figure:>20}{spread:>17}  {asked:>7}  {row.verdict(values)}"


def _median(measure: str, name: str, rounds: list[Round]) -> str:
    values = [one.figures[measure][name] for one in rounds if name in one.figures.get(measure, {})]
    if not values:
        return ""
    value = statistics.median(values)
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"
