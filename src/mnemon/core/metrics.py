"""Counters and gauges, and how Prometheus wants to read them. No tenant, session or key ever becomes a label."""

from __future__ import annotations

from collections import defaultdict

HELP = {
    "mnemon_requests_total": "HTTP requests by route and status.",
    "mnemon_turns_total": "Turns by outcome.",
    "mnemon_turns_running": "Turns in flight.",
    "mnemon_turn_seconds_sum": "Seconds that turns took, the model's time included.",
    "mnemon_prompt_tokens_total": "Prompt tokens sent to the model, as assembled.",
    "mnemon_compressions_total": "Sessions continued in a child.",
    "mnemon_job_runs_total": "Runs of jobs by how they ended; `queued` is one that is taken up again.",
    "mnemon_job_runs_running": "Runs of jobs under way.",
    "mnemon_job_deliveries_total": "Tries to deliver what a job said, by outcome.",
    "mnemon_replays_total": "Requests answered from an idempotency record or joined to a running turn.",
}
GAUGES = frozenset({"mnemon_turns_running", "mnemon_job_runs_running"})

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Numbers of one process."""

    def __init__(self) -> None:
        self.values: dict[str, dict[Labels, float]] = {name: defaultdict(float) for name in HELP}

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        self.values[name][tuple(labels.items())] += value

    def text(self) -> str:
        """The exposition format, version 0.0.4."""
        lines = []
        for name, explanation in HELP.items():
            lines += [f"# HELP {name} {explanation}", f"# TYPE {name} {'gauge' if name in GAUGES else 'counter'}"]
            for labels, value in sorted(self.values[name].items()):
                text = ",".join(f'{key}="{escaped(label)}"' for key, label in labels)
                lines.append(f"{name}{{{text}}} {value:.17g}" if text else f"{name} {value:.17g}")
        return "\n".join(lines) + "\n"


def escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
