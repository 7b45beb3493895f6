"""Run the cases of a seed bank through the distiller and the judge and print what was understood: `python scripts/understood.py BANK.py`.

A bank is a module with POOLS of values and CASES by persona; every wording of every case is tried, among the first wordings of the others.
"""

from __future__ import annotations

import random
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from mnemon.memory.distil import distil, judge
from mnemon.memory.statements import Candidate, Statement, Verdict

DAY = 86400.0
BEGUN = 1_750_000_000.0


class Told:
    """One case, told in one wording: the candidates and verdicts of each step, and what stays open of it."""

    def __init__(self, steps: list[str], around: list[Statement]) -> None:
        self.steps: list[list[tuple[Candidate, Verdict]]] = []
        self.own: dict[str, Statement] = {}
        open_ = list(around)
        for n, text in enumerate(steps):
            at = BEGUN + n * DAY
            self.steps.append([])
            for k, candidate in enumerate(distil(text, origin="user", said_at=at).candidates):
                verdict = judge(candidate, said_at=at, origin="user", known=open_)
                self.steps[-1].append((candidate, verdict))
                open_ = [s for s in open_ if s.id not in (*verdict.closes, *verdict.retracts)]
                if verdict.outcome == "added":
                    self.own[f"own{n}.{k}"] = Statement(id=f"own{n}.{k}", candidate=candidate, origin="user", said_at=at)
                    open_.append(self.own[f"own{n}.{k}"])
        self.open = [s.candidate.text for s in open_ if s.id in self.own]
        self.touched = {i for step in self.steps for _, v in step for i in (*v.closes, *v.retracts, *v.explains)}

    @property
    def last(self) -> list[Verdict]:
        return [v for _, v in self.steps[-1]]

    @property
    def kept(self) -> bool:
        return all(self.steps)

    def closed(self, *, reversal: bool = False) -> bool:
        return any(set(v.closes) & self.own.keys() and (v.reversal or not reversal) for v in self.last)


def understood(kind: str, told: Told, filled: Callable[[str], str]) -> bool:
    """Whether the case was understood as its kind asks for."""
    said = [c for step in told.steps for c, _ in step]
    checks: dict[str, Callable[[], bool]] = {
        "update": told.closed,
        "correction": told.closed,
        "reversal": lambda: told.closed(reversal=True),
        "retraction": lambda: any(filled("control") in t for t in told.open) and not any(filled("value") in t for t in told.open),
        "cause": lambda: any(c.cause for c in said) and (len(told.steps) == 1 or any(v.explains for v in told.last)),
        "many": lambda: told.kept and not told.touched & told.own.keys(),
        "decoy": lambda: bool(told.steps[0]) and not any(filled("decoy") in c.text for c, _ in told.steps[1]),
    }
    return checks.get(kind, lambda: told.kept)()


def wordings(case: dict[str, Any]) -> Iterator[list[str]]:
    """Every way to tell a case, as the messages of its steps."""
    for chosen in product(*case["steps"]):
        yield [c[0] if isinstance(c, tuple) else c for c in chosen]


def main(path: str) -> None:
    """Try every wording and print the misses, then the counts."""
    bank = runpy.run_path(path)
    counts: Counter[tuple[str, str]] = Counter()
    for persona, cases in bank["CASES"].items():
        values: dict[tuple[int, str], str] = {}
        left = {name: random.Random(name).sample(pool, len(pool)) for name, pool in bank["POOLS"].items()}

        def fill(text: str, n: int, values: dict[tuple[int, str], str] = values, left: dict[str, list[str]] = left) -> str:
            def value(match: re.Match[str]) -> str:
                name = match[1]
                if (n, name) not in values:
                    values[n, name] = left[re.sub(r"\d+$", "", name)].pop()
                return values[n, name]

            return re.sub(r"\{([a-z_]+\d?)\}", value, text)

        first = [fill(next(wordings(case))[0], n) for n, case in enumerate(cases)]
        for n, case in enumerate(cases):
            others = [c for m, text in enumerate(first) if m != n for c in distil(text, origin="user", said_at=BEGUN - DAY).candidates]
            around = [Statement(id=f"other{i}", candidate=c, origin="user", said_at=BEGUN - DAY) for i, c in enumerate(others)]
            for steps in wordings(case):
                told = Told([fill(s, n) for s in steps], around)
                right = understood(case["kind"], told, lambda field, case=case, n=n: fill(case[field], n))  # type: ignore[misc]
                strangers = [around[int(i.removeprefix("other"))].candidate.text for i in told.touched - told.own.keys()]
                counts[case["kind"], "understood" if right else "missed"] += 1
                counts[case["kind"], "touched others"] += bool(strangers)
                if not right or strangers:
                    print(persona, case["kind"], "understood" if right else "missed", [fill(s, n) for s in steps], strangers)
    for kind in dict.fromkeys(k for k, _ in counts):
        print(f"{kind:12}", {what: counts[kind, what] for what in ("understood", "missed", "touched others")})


if __name__ == "__main__":
    main(sys.argv[1])
