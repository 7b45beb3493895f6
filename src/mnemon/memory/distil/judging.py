"""What a new statement does to those that are known: it repeats, closes, takes back or explains them, or stands beside them.

Precision first: a statement is closed by a newer value of the same single slot, by the opposite of what it says, or by words that speak of
a change and of its topic. What shares no word with it never touches it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from mnemon.memory import words
from mnemon.memory.distil import cues, lexicon, limits, matching, owners, patterns, phrases, positions, slots, times
from mnemon.memory.distil.matching import Bag
from mnemon.memory.distil.readings import GENERIC
from mnemon.memory.statements import CHANGE_OF_MIND, Candidate, Origin, Statement, Verdict

STRENGTH: dict[Origin, int] = {"user": 3, "import": 2, "assistant": 1, "tool": 1, "job": 1}
JUST_NOW = 900  # seconds in which "forget that" can mean what was said last
MATTER = 0.3  # the share of a statement's words that a reversal must name
TURNS = ("correction", "reversal", "update")
NEWLY = patterns.pattern(r"(?:my|our)\s+new\s", re.IGNORECASE)
MOST_TERMS = 14  # a sentence of more matters than this speaks of too much to say which of them changed
COMMON = 3  # statements that may share a word before it tells little
CLOCK = patterns.pattern(r"\d:\d|\bnoon\b|\bmidnight\b|\d\s*(?:am|pm)\b|o['’]clock", re.IGNORECASE)
UNIT = patterns.pattern(r"[\d.,]+|^(?:about|around|roughly|almost|nearly|over|under)\b", re.IGNORECASE)
MEASURES = frozenset({"when", "version", "percent", "number", "code"})
WEAK = frozenset(stem for form, verb in lexicon.VERBS.items() if verb.lemma in lexicon.LIGHT for stem in words.normal(form))
# What is to be forgotten may be named by what it is: my brother's name, the money that I owe.
SOFT = frozenset(
    s for w in "fact information info detail data stuff money amount situation matter subject".split() for s in words.normal(w)
)
DATES = frozenset(stem for name in [*times.MONTHS, *times.DAYS] for stem in words.normal(name))


def judge(candidate: Candidate, *, said_at: float, origin: Origin, known: Sequence[Statement]) -> Verdict:
    """What becomes of a candidate among the statements that are open."""
    if origin not in ("user", "import"):
        return Verdict(outcome="refused", rule=f"said_by_{origin}")
    known = [s for s in known if s.valid_to is None]
    if candidate.cue == "retraction":
        taken = _taken_back(candidate, said_at, known)
        return Verdict(
            outcome="refused",
            rule="retraction" if taken else "retraction_of_nothing",
            retracts=tuple(s.id for s in taken if _may(origin, said_at, s)),
        )
    if candidate.cue not in TURNS:
        known = _concerned(candidate, known)
    repeated = next((s for s in known if repeats(candidate, s.candidate)), None)
    if repeated is not None:
        return Verdict(outcome="merged", rule="repeats", into=repeated.id)
    explained = tuple(s.id for s in _explained(candidate, known))
    near = known if candidate.cue in TURNS else _of_slot(candidate, known)
    near = [s for s in near if _may(origin, said_at, s) and s.id not in explained]
    closed, rule, reversal = _closed(candidate, near)
    if not closed and (meant := _meant(candidate, said_at, near)):
        closed, rule = [meant], "correction"
    if not closed and candidate.cue in ("update", "reversal"):
        closed, rule, reversal = _turned(candidate, near)
    return Verdict(
        outcome="added",
        rule=rule or ("explains" if explained else "new"),
        closes=tuple(s.id for s in closed),
        explains=explained,
        reversal=reversal,
    )


def _turned(candidate: Candidate, known: Sequence[Statement]) -> tuple[list[Statement], str, bool]:
    """What a phrase that is said of many things turns round: it is closed if only it can be meant, and else the phrase is marked."""
    found, denied = positions.turned_round(candidate, known)
    if len(found) == 1 and denied:
        return found, "reversal", True
    return [], CHANGE_OF_MIND if found else "", False


def _may(origin: Origin, said_at: float, statement: Statement) -> bool:
    """The weaker origin never overrides the stronger, nor the older word the newer."""
    return STRENGTH[origin] >= STRENGTH[statement.origin] and said_at >= statement.said_at


def _concerned(candidate: Candidate, known: Sequence[Statement]) -> list[Statement]:
    """Those that a candidate which speaks of no change can do anything to: of its slot, of its words, or told without their reason."""
    flat, subject, attribute = _flat(candidate.text), candidate.subject or None, candidate.attribute
    explains = bool(candidate.cause and candidate.effect)
    found = []
    for s in known:
        old = s.candidate
        if (
            (explains and not old.cause)
            or (old.attribute == attribute and old.subject == subject)
            or old.text == candidate.text
            or _flat(old.text) == flat
        ):
            found.append(s)
    return found


def _of_slot(candidate: Candidate, known: Sequence[Statement]) -> list[Statement]:
    subject, attribute = candidate.subject, candidate.attribute
    return [s for s in known if s.candidate.subject == subject and s.candidate.attribute == attribute] if subject else []


def repeats(one: Candidate, two: Candidate) -> bool:
    """Do they say the same? Then the second adds evidence and nothing else."""
    if one.negated != two.negated or (one.kind == "plan") != (two.kind == "plan") or (one.cause and not two.cause):
        return False
    if one.text == two.text or _flat(one.text) == _flat(two.text):
        return True
    if not one.subject or not one.values or (one.subject, one.attribute) != (two.subject, two.attribute):
        return False
    if one.happened != two.happened and (one.happened is None or two.happened is None or one.happened.start != two.happened.start):
        return False
    return _same_values(one, two) and (one.single or set(one.terms) == set(two.terms))


@lru_cache(maxsize=matching.KEPT)
def _flat(text: str) -> tuple[str, ...]:
    return tuple(words.WORD.findall(text.casefold()))


@lru_cache(maxsize=matching.KEPT)
def _flat_values(values: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset([_flat(v) for v in values])


def _same_values(one: Candidate, two: Candidate) -> bool:
    return _flat_values(one.values) == _flat_values(two.values)


def _closed(candidate: Candidate, known: Sequence[Statement]) -> tuple[list[Statement], str, bool]:
    if candidate.cue == "addition":
        return [], "", False
    same = _of_slot(candidate, known)
    # What is cheap to see is looked at first: nearly all of them hold beside the new one.
    opposite = [
        s
        for s in same
        if s.candidate.negated != candidate.negated
        and _same_values(s.candidate, candidate)
        and _as_limited(candidate, s.candidate)
        and _as_wide(candidate, s.candidate)
    ]
    if opposite:
        return opposite, "opposite", True
    turned = candidate.cue == "reversal"
    newer = [
        s
        for s in same
        if candidate.single and s.candidate.single and candidate.values and s.candidate.values and not _same_values(candidate, s.candidate)
        if _as_limited(candidate, s.candidate) and not _moved_elsewhere(candidate, s.candidate)
        if candidate.cue != "none" or (_comparable(candidate.values[0], s.candidate.values[0]) and not _yet_to_come(candidate, s.candidate))
    ]
    if newer:
        return newer, "newer_value" if candidate.cue == "none" else candidate.cue, turned
    if candidate.cue in TURNS:
        target = _topic(candidate, known)
        if target is not None:
            return [target], candidate.cue, turned
    return [], "", False


def _moved_elsewhere(new: Candidate, old: Candidate) -> bool:
    """Whether a move tells where from, and that is not what the older statement has: other things move, too."""
    return new.rule == "changed" and bool(new.about) and not matching.all_in(words.words(new.about), matching.bag(matching.said(old.text)))


def _as_limited(one: Candidate, two: Candidate) -> bool:
    """Whether both hold at the same times and places: not "I don't eat meat on Fridays" and "I eat meat"."""
    return limits.limits(one.text, one.values) == limits.limits(two.text, two.values)


def _as_wide(new: Candidate, old: Candidate) -> bool:
    """Whether one denies the whole of the other: "I don't eat meat with rice" does not, "I don't eat meat" denies all of it."""
    behind = limits.behind(new.text, new.values)
    return behind == limits.behind(old.text, old.values) or (new.negated and not behind)


def _yet_to_come(new: Candidate, old: Candidate) -> bool:
    """What will be so next year does not end what is so now; but a date that will be another is another."""
    return new.kind == "plan" and old.kind != "plan" and phrases.shape(new.values[0]) != "when"


def _meant(candidate: Candidate, said_at: float, known: Sequence[Statement]) -> Statement | None:
    """What "no, I meant 5433" corrects: the last thing said with a value of that kind, if it was said just now."""
    if candidate.cue != "correction" or (candidate.subject and candidate.attribute != "mean") or not candidate.values:
        return None
    of_a_kind = [s for s in known if s.candidate.values and _comparable(candidate.values[0], s.candidate.values[0])]
    last = max(of_a_kind, key=lambda s: s.said_at, default=None)
    return last if last is not None and said_at - last.said_at <= JUST_NOW else None


def _comparable(one: str, two: str) -> bool:
    """Can one take the other's place? A name is no trade, a day no hour, and years are no centimetres."""
    kinds = phrases.shape(one), phrases.shape(two)
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] == "when":
        return (CLOCK.search(one) is None) == (CLOCK.search(two) is None)
    if kinds[0] == "number":
        return UNIT.sub("", one).strip(" .").casefold() == UNIT.sub("", two).strip(" .").casefold()
    return True


@dataclass(frozen=True, slots=True)
class Match:
    """How much a statement is about what the candidate speaks of."""

    statement: Statement
    score: float


def _topic(candidate: Candidate, known: Sequence[Statement]) -> Statement | None:
    """The one statement that a correction, update or reversal speaks of; nothing if there is none, or two of them."""
    if len(candidate.terms) > MOST_TERMS:
        return None
    known = [s for s in known if len(s.candidate.terms) <= MOST_TERMS]
    spoken = _spoken(candidate)
    found = [Match(s, _score(candidate, s.candidate, link, known)) for s in known if (link := _link(spoken, s.candidate)) is not None]
    found.sort(key=lambda m: (-m.score, -m.statement.said_at))
    if not found or (
        len(found) > 1
        and found[0].score - found[1].score < 0.2
        and not _same_slot(found[0].statement.candidate, found[1].statement.candidate)
    ):
        return None
    return found[0].statement


class Spoken(NamedTuple):
    """A candidate that speaks of a change, and what of it is compared with every known statement."""

    candidate: Candidate
    telling: tuple[str, ...]
    telling_bag: Bag
    about: tuple[str, ...]


def _spoken(candidate: Candidate) -> Spoken:
    terms = candidate.terms
    if positions.AGAIN.search(candidate.text):  # what is done again may be told by the verb alone: "I'm coaching again"
        terms = (*terms, *words.normal(candidate.attribute.partition(" ")[0]))
    telling = tuple([t for t in terms if _tells(t)])
    return Spoken(candidate, telling, matching.bag(telling), words.words(candidate.about))


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What two statements share: telling words, a noun that both have a value of, the old value by name, the kind of value, the slot.

    `kind`: a position that was turned round, and what it is about is of the same kind of thing.
    """

    telling: set[str]
    kin: str
    named: bool
    alike: bool
    same: bool
    kind: bool = False


def _link(spoken: Spoken, old: Candidate) -> Link | None:
    """What ties a statement to what the candidate speaks of; nothing if it does not fit. What is cheap to see is looked at first."""
    candidate, same = spoken.candidate, _same_slot(spoken.candidate, old)
    named = bool(spoken.about) and matching.all_in(spoken.about, matching.bag(matching.said(old.text)))
    if (candidate.about and not named) or (candidate.cue == "update" and old.kind == "event" and not named and not same):
        return None
    there = matching.bag(old.terms)
    telling = {t for t in spoken.telling if matching.has(t, there)} if matching.meet(spoken.telling_bag, there) else set()
    kin = _kin(candidate, old)
    kind = candidate.cue == "reversal" and positions.same_matter(candidate, old)
    if not (telling or kin or named or kind or _corrected(candidate, old)) or not owners.compatible(candidate, old):
        return None
    link = Link(
        telling=telling,
        kin=kin,
        named=named,
        alike=_alike(candidate, old) and _of_the_thing(candidate, old, telling),
        same=same,
        kind=kind,
    )
    fits = {"correction": _corrects, "update": _updates, "reversal": _reverses}[candidate.cue]
    return link if fits(candidate, old, link) else None


def _score(candidate: Candidate, old: Candidate, link: Link, known: Sequence[Statement]) -> float:
    """How well a statement fits as what the candidate speaks of. A word that many share tells less."""
    own = matching.bag(old.terms).words
    shared = [(sum(term in matching.bag(s.candidate.terms).words for s in known), term in own) for term in link.telling]
    score = (
        sum((1.0 if n <= COMMON else 0.5) * (1.0 if whole else 0.7) for n, whole in shared)
        + 2.0 * link.named
        + bool(link.kin)
        + 0.5 * link.alike
        + link.same
        + 0.5 * link.kind
    )
    return score + 0.5 * (candidate.attribute == old.attribute) + 0.3 * (candidate.cue == "reversal" and old.kind in positions.POSITIONS)


def _corrected(candidate: Candidate, old: Candidate) -> bool:
    """Whether a correction gives another value of the same kind for what an older statement says, one at a time or not."""
    if candidate.cue != "correction" or not candidate.values or not old.values or not candidate.subject:
        return False
    same = (candidate.subject, candidate.attribute) == (old.subject, old.attribute)
    return same and not _same_values(candidate, old) and _comparable(candidate.values[0], old.values[0])


def _corrects(candidate: Candidate, old: Candidate, link: Link) -> bool:
    if _corrected(candidate, old):
        return True
    return link.named or link.same or (link.alike and bool(link.telling))


def _updates(candidate: Candidate, old: Candidate, link: Link) -> bool:
    """An update must fill the same place: the same slot, a value of the same kind, or the old value by name."""
    if not candidate.values or old.negated:
        return False
    if (candidate.subject, candidate.attribute) == (old.subject, old.attribute) and NEWLY.match(candidate.text):
        return candidate.attribute not in slots.MANY and phrases.shape(candidate.values[0]) == phrases.shape(
            old.values[0] if old.values else ""
        )
    if link.same or (link.named and bool(link.telling or link.alike or candidate.attribute == old.attribute)):
        return True
    if old.kind == "event":  # what has happened is not updated
        return False
    if link.alike and link.telling:
        return True
    if (
        link.kin and (candidate.attribute.startswith("be ") or candidate.attribute == "where") and candidate.subject == old.subject
    ):  # "I'm down to 81 kilos"
        return True
    if link.kin and (link.telling - {link.kin, *words.normal(link.kin)} or candidate.attribute == old.attribute):
        return True
    where = (
        bool(old.values)
        and _comparable(candidate.values[0], old.values[0])
        and candidate.subject == old.subject not in ("", phrases.USER)
        and candidate.attribute.rpartition(" ")[2] == old.attribute.rpartition(" ")[2]
    )
    return where or (len(link.telling) > 1 and all(any(phrases.shape(v) == "name" for v in c.values) for c in (candidate, old)))


def _reverses(candidate: Candidate, old: Candidate, link: Link) -> bool:
    """A reversal must be about the matter of the older statement, not only touch on it."""
    if candidate.about and cues.ENDED.search(candidate.text.lower()):
        return not old.negated and not positions.GIVEN_UP.search(old.text) and positions.fills(words.words(candidate.about), old)
    if not limits.limits(candidate.text, candidate.values) <= limits.limits(old.text, old.values):
        return False
    if positions.AGAIN.search(candidate.text) and not (old.negated or positions.GIVEN_UP.search(old.text)):
        return False
    if old.negated and positions.AGAIN.search(candidate.text) and positions.AWAY.search(candidate.text):  # it is as it was
        return False
    if (
        old.kind == "event" and not link.named and not (link.kind and positions.CHOICE.search(old.text))
    ):  # it has happened all the same, unless it is just this that is undone
        return len(link.telling) > 1 or (bool(link.telling) and _same_values(candidate, old))
    telling = link.telling - owners.relatives()
    spoken = matching.bag(tuple(dict.fromkeys(positions.nouns(candidate)))) if candidate.values and candidate.negated else None
    telling = {t for t in telling if spoken is None or matching.has(t, spoken)}  # not what stands only in the reason
    matter = len(telling) + bool(link.kin)
    if link.kind or (matter and positions.turned(candidate.text) and positions.position(old) and telling & {*positions.nouns(old)}):
        return True
    if link.named or (
        link.same and (candidate.negated or not candidate.values or not old.values or _comparable(candidate.values[0], old.values[0]))
    ):
        return True
    if not (positions.position(old) or candidate.negated or positions.OVER.search(candidate.text)):  # another choice ends no plain fact
        return False
    thing = owners.thing(old.subject)
    if matter and thing and matching.all_in(thing, matching.bag(candidate.terms)):
        return True
    return matter > 2 or (matter > 0 and matter / max(1, len(old.terms)) >= MATTER)


def _same_slot(one: Candidate, two: Candidate) -> bool:
    """The same slot of a thing; what people do themselves ("I play") is no slot that only one thing fills."""
    thing = one.subject not in ("", phrases.USER) or one.attribute.endswith(" when")
    return thing and bool(one.subject) and (one.subject, one.attribute) == (two.subject, two.attribute)


def _tells(term: str) -> bool:
    """Does a word say what a sentence is about? Not a light verb, a number or a date."""
    return term not in WEAK and term not in GENERIC and term not in DATES and not term[:1].isdigit()


def _alike(one: Candidate, two: Candidate) -> bool:
    """Whether their values are of one kind that can be measured: two days, two versions, two numbers."""
    return not _measures(one.values).isdisjoint(_measures(two.values))


@lru_cache(maxsize=matching.KEPT)
def _measures(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset(["clock" if k == "when" and CLOCK.search(v) else k for v in values if (k := phrases.shape(v)) in MEASURES])


def _of_the_thing(one: Candidate, two: Candidate, telling: set[str]) -> bool:
    """Whether one of the shared words is what either of them speaks of, not only something that both mention."""
    things = (*owners.thing(one.subject), *owners.thing(two.subject), *words.normal(one.attribute), *words.normal(two.attribute))
    return not things or not telling or any(matching.has(t, matching.bag(things)) for t in telling)


def _kin(one: Candidate, two: Candidate) -> str:
    """The noun that both have a value of: the upper barn, the lower barn."""
    heads = _heads(one.values)
    if not heads:
        return ""
    shared = heads & (_heads(two.values) if two.values else set(two.subject.split()))
    return next((h for h in sorted(shared) if h.isalpha()), "") if shared and not _same_values(one, two) else ""


@lru_cache(maxsize=matching.KEPT)
def _heads(values: tuple[str, ...]) -> frozenset[str]:
    return frozenset([phrases.singular(v.split()[-1]) for v in values if " " in v])


def _taken_back(candidate: Candidate, said_at: float, known: Sequence[Statement]) -> list[Statement]:
    if not candidate.about:
        newest = max(known, key=lambda s: s.said_at, default=None)
        return [newest] if newest is not None and 0 <= said_at - newest.said_at <= JUST_NOW else []
    if candidate.subject == phrases.USER:
        known = [s for s in known if not owners.of_others(s.candidate)]
    if candidate.values and (same := [s for s in _of_slot(candidate, known) if _same_values(s.candidate, candidate)]):
        return same
    every = [w for w in words.words(candidate.about) if w not in SOFT]
    whole = [s for s in known if matching.all_in(every, matching.bag(matching.said(s.candidate.text)))] if every else []
    if whole:
        own = [s for s in whole if candidate.about.lower() in s.candidate.text.lower()]
        return own if candidate.subject == phrases.USER and own else whole
    about = [t for t in candidate.terms if t not in SOFT]
    shares = [(sum(matching.has(w, matching.bag(matching.said(s.candidate.text))) for w in about) / len(about), s) for s in known if about]
    whole = [s for share, s in shares if share == 1]
    if whole:
        return whole
    best = max(shares, key=lambda x: (x[0], x[1].said_at), default=None)
    return [best[1]] if best is not None and best[0] >= 0.6 and sum(share == best[0] for share, _ in shares) == 1 else []


def _explained(candidate: Candidate, known: Sequence[Statement]) -> list[Statement]:
    """The statement that the reason is given for, if it was said before without one."""
    if not candidate.cause or not candidate.effect:
        return []
    if candidate.negated:  # why it is no longer so is no reason for what was
        known = [s for s in known if s.candidate.negated]
    if all(s.candidate.cause for s in known):
        return []
    said = matching.said(candidate.effect)
    effect = [w for w in said if w not in GENERIC] or list(said)
    telling = tuple([w for w in effect if w not in WEAK] or effect)
    telling_bag, effect_bag = matching.bag(telling), matching.bag(tuple(effect))
    best: tuple[float, float] = (0.0, 0.0)
    found: list[Statement] = []
    for s in known:
        if s.candidate.cause:
            continue
        told = matching.content(s.candidate.text)
        there = matching.bag(matching.said(s.candidate.text))
        if not matching.meet(telling_bag, there) or not any(matching.has(w, there) for w in telling):
            continue
        share = sum(matching.has(w, there) for w in effect) / len(effect)
        cover = sum(matching.has(w, effect_bag) for w in told) / max(1, len(told))
        if share >= 0.5 and (cover >= 0.3 or _late(candidate)) and (share, cover) >= best:
            found = [s] if (share, cover) > best else [*found, s]
            best = (share, cover)
    return found if len(found) == 1 else []


def _late(candidate: Candidate) -> bool:
    """Whether what it explains is not told in it, only named: "the reason we left: …"."""
    return (
        candidate.effect in candidate.text
        and candidate.text.find(candidate.effect) < candidate.text.find(candidate.cause)
        and (":" in (named := candidate.text[: candidate.text.find(candidate.cause)]) or "reason" in named.lower())
    )
