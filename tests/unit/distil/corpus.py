"""Reads the corpus beside it and says what of it is met; `python -m tests.unit.distil.corpus` prints the figures and every miss."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mnemon.memory.distil import distil, judge
from mnemon.memory.statements import CHANGE_OF_MIND, Candidate, Distilled, Statement, Verdict

SAID = datetime(2026, 6, 17, 12, tzinfo=UTC).timestamp()
DAY = 86400.0
HERE = Path(__file__).parent
MISSED = "not understood yet"
SHUT = frozenset({"closes", "reverses", "retracts"})


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the corpus: messages, what is expected of the last, how long before it the others were said, whether the rules miss it."""

    messages: tuple[str, ...]
    expected: tuple[str, ...]
    missed: bool = False
    ago: float = 3 * DAY


def load(name: str) -> list[Case]:
    """The cases of a file."""
    lines = [line for line in (HERE / name).read_text().splitlines() if line and not line.startswith(("#", "=="))]
    parted = [line.replace("\\n", "\n").rpartition(" => ") for line in lines]
    return [case(said, [e.strip() for e in expected.split(";")]) for said, _, expected in parted]


def case(said: str, expected: list[str]) -> Case:
    """A case without the remark that it is not understood yet; behind |> stands what was said a minute later."""
    messages = tuple(said.replace(" |> ", " || ").split(" || "))
    return Case(messages, tuple(e for e in expected if e != MISSED), MISSED in expected, 60.0 if " |> " in said else 3 * DAY)


def heard(text: str, at: float = SAID) -> Distilled:
    """What the distiller makes of what a user says."""
    return distil(text, origin="user", said_at=at, timezone="UTC")


def unmet(case: Case) -> list[str]:
    """What of a sentence's expectations is not met; empty if all is."""
    found = heard(case.messages[0])
    if case.expected[0].startswith("no "):
        rules = case.expected[0].removeprefix("no ").split("|")
        missing = [f"kept: {c.text}" for c in found.candidates]
        return missing or (
            [] if any(r.rule in rules or "*" in rules for r in found.refusals) else [f"refused by {[r.rule for r in found.refusals]}"]
        )
    if not found.candidates:
        return [f"not kept: {[r.rule for r in found.refusals]}"]
    return min(([e for e in case.expected[1:] if not met(c, e)] for c in found.candidates), key=len)


def met(c: Candidate, expectation: str) -> bool:
    """Whether a candidate meets one expectation."""
    name, _, wanted = expectation.partition("=")
    if name == "when":
        if c.happened is None:
            return False
        start, end = (datetime.fromtimestamp(t, UTC).date().isoformat() for t in (c.happened.start, c.happened.end))
        return f"{start}..{end} {c.happened.grain}" == wanted
    if name == "slot":
        return f"{c.subject}/{c.attribute}" == wanted
    if name == "value":
        return any(wanted in v for v in c.values)
    if name in ("about", "cause", "effect"):
        return wanted in getattr(c, name)
    flags = {"neg": c.negated, "single": c.single, "many": not c.single}
    return flags[name] if name in flags else bool(getattr(c, name) == wanted)


def bystanders() -> list[Statement]:
    """Forty statements about other things: nothing in a pair may touch them."""
    said = [c.messages[0] for c in load("sentences.txt") if c.expected[0] == "keep"]
    found = [c for text in said[::3] for c in heard(text, SAID - 30 * DAY).candidates if c.cue == "none"]
    return [statement(f"by{i}", c, SAID - 30 * DAY) for i, c in enumerate(found[:40])]


def statement(name: str, candidate: Candidate, at: float) -> Statement:
    """A candidate as it stands in the ledger."""
    return Statement(id=name, candidate=candidate, origin="user", said_at=at)


def verdict(case: Case, among: list[Statement]) -> tuple[str, list[Verdict]]:
    """What the last message of a pair does to the others, in one word, and the verdicts."""
    old: list[Statement] = []
    for text in case.messages[:-1]:
        old += [statement(f"old{len(old) + i}", c, SAID - case.ago) for i, c in enumerate(heard(text, SAID - case.ago).candidates)]
    mine = {s.id for s in old}
    new = heard(case.messages[-1]).candidates
    about = {s.id: s for s in among if not any(same(s.candidate, c) for c in (*(o.candidate for o in old), *new))}
    verdicts = [judge(c, said_at=SAID, origin="user", known=[*about.values(), *old]) for c in new]
    touched = {i for v in verdicts for i in (*v.closes, *v.retracts, *v.explains, *([v.into] if v.into else []))}
    if touched - mine:
        return f"touches {[about[i].candidate.text for i in touched - mine]}", verdicts
    if any(v.outcome == "merged" for v in verdicts):
        return "merged", verdicts
    for v in verdicts:
        if v.closes:
            return ("reverses" if v.reversal else "closes"), verdicts
        if v.retracts:
            return "retracts", verdicts
        if v.explains:
            return "explains", verdicts
    return "keeps", verdicts


def same(one: Candidate, two: Candidate) -> bool:
    """Whether a bystander speaks of what the pair speaks of."""
    return bool(set(one.terms) & set(two.terms)) or (one.subject, one.attribute) == (two.subject, two.attribute)


@dataclass(slots=True)
class Score:
    """Counts of one kind of decision."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    def note(self, *, wanted: bool, got: bool) -> None:
        self.right += wanted and got
        self.wrong += got and not wanted
        self.missed += wanted and not got

    def __str__(self) -> str:
        precision = self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0
        recall = self.right / (self.right + self.missed) if self.right + self.missed else 1.0
        return f"precision {precision:.3f} recall {recall:.3f} (right {self.right}, wrong {self.wrong}, missed {self.missed})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was measured over a file of sentences or of pairs."""

    cases: int
    met: int
    decision: Score
    misses: tuple[str, ...]


def measure_sentences(name: str) -> Figures:
    """`decision` is about keeping: kept what was to be kept, and nothing else."""
    keep, misses = Score(), []
    cases = load(name)
    for case in cases:
        wanted = not case.expected[0].startswith("no ")
        keep.note(wanted=wanted, got=bool(heard(case.messages[0]).candidates))
        if missing := unmet(case):
            misses.append(f"{case.messages[0]}  {missing}")
    return Figures(cases=len(cases), met=len(cases) - len(misses), decision=keep, misses=tuple(misses))


def measure_pairs(name: str) -> Figures:
    """`decision` is about closing: closed what was to be closed, and nothing else."""
    closing, misses = Score(), []
    cases = load(name)
    among = bystanders()
    for case in cases:
        got, verdicts = verdict(case, among)
        wanted = case.expected[0].split("|")
        shut = got in SHUT or got.startswith("touches")
        closing.note(wanted=shut if SHUT & {*wanted} and "keeps" in wanted else bool(SHUT & {*wanted}), got=shut)
        if got not in wanted:
            misses.append(f"{' || '.join(case.messages)}  wanted {case.expected[0]}, got {got} {[v.rule for v in verdicts]}")
    return Figures(cases=len(cases), met=len(cases) - len(misses), decision=closing, misses=tuple(misses))


def marked(case: Case, among: list[Statement]) -> bool:
    """Whether the last message is shown as what holds now: it closes what was said, or is marked as a change of mind."""
    turned = any(c.rule == CHANGE_OF_MIND for c in heard(case.messages[-1]).candidates)
    got, verdicts = verdict(case, among)
    return turned or got.startswith("touches") or any(v.closes or v.rule == CHANGE_OF_MIND for v in verdicts)


def measure_turns(name: str) -> Figures:
    """`decision` is about marking: marked what turns something round, and nothing else."""
    marking, misses = Score(), []
    cases = load(name)
    among = bystanders()
    for case in cases:
        wanted, got = case.expected[0] == "turns", marked(case, among)
        marking.note(wanted=wanted, got=got)
        if wanted != got:
            misses.append(f"{' || '.join(case.messages)}  wanted {case.expected[0]}")
    return Figures(cases=len(cases), met=len(cases) - len(misses), decision=marking, misses=tuple(misses))


def main(names: list[str]) -> None:
    """Print the figures of these files."""
    for name in names:
        measure = measure_turns if "turns" in name else measure_pairs if "pairs" in name else measure_sentences
        figures = measure(name)
        sys.stdout.write(
            "\n".join(figures.misses) + f"\n{name}: {figures.met} of {figures.cases} as expected; kept or closed: {figures.decision}\n\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["sentences.txt", "pairs.txt"])
