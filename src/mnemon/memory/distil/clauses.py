"""The bones of a clause: who, does what, and what comes after it. No grammar book: word forms and their neighbours decide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mnemon.memory.distil import lexicon, patterns

WORD = patterns.pattern(r"\w+(?:[-'’.:/@+&,]\w+)*%?|[$€£]\s?\d[\d.,]*\w*")
BREAKS = frozenset((",", ";", ":", "–", "—", "-", "("))
COMMAND_LEADS = frozenset("please pls kindly do don't not never always and also just only".split())
MOST_WORDS = 250


class Word(NamedTuple):
    """One word: as written, in small letters, where it stands, and the sign before it if there is one."""

    raw: str
    low: str
    start: int
    end: int
    sign: str

    @property
    def capital(self) -> bool:
        return self.raw[:1].isupper()

    @property
    def digits(self) -> bool:
        return any(c.isdigit() for c in self.raw)


class Clause(NamedTuple):  # as slots: made many times for every sentence, which a dataclass is too slow for
    """A clause that was understood. `passive`: a participle behind a form of "to be", as in "was moved" or "is called"."""

    subject: tuple[Word, ...]
    verb: str
    rest: tuple[Word, ...]
    past: bool = False
    passive: bool = False
    going: bool = False
    negated: bool = False
    modal: str = ""
    command: bool = False


_made = tuple.__new__  # what `Word(...)` does, in half the time


def tokens(text: str) -> list[Word]:
    found: list[Word] = []
    contractions = lexicon.CONTRACTIONS
    marked = "'" in text or "’" in text
    last = 0
    for match in WORD.finditer(text):
        raw = match[0]
        start, end = match.span()
        low = raw.lower()
        sign = text[last:start].strip()[:1] if start > last + 1 else ""
        last = end
        if marked and (low := low.replace("’", "'")) in contractions:
            one, two = contractions[low]
            middle = low.index("'")
            found.append(Word(raw[:middle], one, start, start + middle, sign))
            found.append(Word(two, two, start + middle, end, ""))
        else:
            found.append(_made(Word, (raw, low, start, end, sign)))
        if len(found) > MOST_WORDS:
            break
    return found


def parse(found: Sequence[Word]) -> Clause | None:
    """The first clause of these words; nothing if no verb was recognised. What follows a comma is no part of it."""
    at = verb_at(found)
    if at is None:
        return None
    i = at
    while (
        i < len(found)
        and (found[i].low in lexicon.AUXILIARIES or (i > at and found[i].low in lexicon.ADVERBS))
        and not (i > at and found[i].sign)
    ):
        i += 1
    j = at - 1
    while j > 0 and found[j].low in lexicon.ADVERBS:
        j -= 1
    subject = _bare(tuple(found[: j + 1]), closed=bool(found[at].sign))
    negated = _nothing(subject) or any(w.low in lexicon.NEGATIONS for w in found[j + 1 : i])
    auxiliaries = [w.low for w in found[at:i] if w.low in lexicon.AUXILIARIES]
    main = found[i] if i < len(found) and not (i > at and found[i].sign) else None
    if not auxiliaries:
        return _simple(subject, found[at], rest=_until_end(found[at + 1 :]), negated=negated)
    return _compound(subject, auxiliaries, main, rest=_until_end(found[i:]), negated=negated)


def command(found: Sequence[Word]) -> Clause | None:
    """Please copy Ann on every mail: a verb in its plain form, with nobody before it."""
    i = 0
    while i < len(found) and found[i].low in COMMAND_LEADS:
        i += 1
    if i >= len(found) - 1:
        return None
    verb = lexicon.VERBS.get(found[i].low)
    plain = (verb is not None and "base" in verb.forms) or found[i].low in lexicon.TASKS or found[i].low in lexicon.COMMANDS
    after = found[i + 1]
    if (
        not plain
        or (after.low in lexicon.AUXILIARIES and i == 0)
        or (i == 0 and verb_at(found) is not None and verb_at(found[i + 1 :]) in (0, 1))
    ):
        return None  # "Rent is 900", "Train times are bad": nouns
    negated = any(w.low in lexicon.NEGATIONS for w in found[:i])
    return Clause(subject=(), verb=verb.lemma if verb else found[i].low, rest=_until_end(found[i + 1 :]), negated=negated, command=True)


def _simple(subject: tuple[Word, ...], word: Word, *, rest: tuple[Word, ...], negated: bool) -> Clause:
    verb = lexicon.VERBS.get(word.low)
    done = lexicon.VERBS.get(rest[0].low) if rest else None
    if verb and verb.lemma == "get" and done and "participle" in done.forms and "base" not in done.forms:  # "got pushed back"
        return Clause(subject=subject, verb=done.lemma, rest=rest[1:], past="past" in verb.forms, passive=True, negated=negated)
    past = ("past" in verb.forms and "base" not in verb.forms) if verb else word.low.endswith("ed")
    return Clause(subject=subject, verb=verb.lemma if verb else word.low, rest=rest, past=past, negated=negated)


def _compound(
    subject: tuple[Word, ...], auxiliaries: list[str], main: Word | None, *, rest: tuple[Word, ...], negated: bool
) -> Clause | None:
    """Has been moved, will go, is not: what the auxiliaries make of the verb behind them."""
    verb = lexicon.VERBS.get(main.low) if main else None
    forms: frozenset[lexicon.Form] = verb.forms if verb else frozenset()
    be = any(a in lexicon.BE or a in ("isn't", "aren't", "wasn't", "weren't") for a in auxiliaries)
    perfect = any(a in lexicon.HAVE or a in ("hasn't", "haven't", "hadn't") for a in auxiliaries)
    past = any(a in ("was", "were", "had", "did", "didn't", "wasn't", "weren't") for a in auxiliaries)
    modal = next((a for a in auxiliaries if a in lexicon.MODALS), "")
    base = Clause(subject=subject, verb="", rest=rest[1:], past=past, negated=negated, modal=modal)
    if verb and be and "gerund" in forms:
        return base._replace(verb=verb.lemma, going=True)
    if verb and be and "participle" in forms:
        return base._replace(verb=verb.lemma, passive=True, past=past or perfect)
    if verb and not be and "participle" in forms and perfect:
        return base._replace(verb=verb.lemma, past=True)
    if verb and not be and not perfect and "base" in forms:
        return base._replace(verb=verb.lemma)
    if (
        main
        and verb is None
        and not main.capital
        and ((be and main.low.endswith("ing") and len(main.low) > 5) or (perfect and main.low.endswith("ed")))
    ):  # in no list
        return base._replace(verb=main.low, going=be, past=past or not be)
    if be or perfect:
        return base._replace(verb="be" if be else "have", rest=rest)
    if auxiliaries[-1] in lexicon.DO:  # "I'll do my best"
        return base._replace(verb="do", rest=rest)
    return base._replace(verb=main.low) if main else None  # "I can't fathom it": a verb that is in no list


def segments(found: Sequence[Word]) -> list[list[Word]]:
    """The stretches between commas and the like, and behind an "and" that begins another clause."""
    parts: list[list[Word]] = [[]]
    for i, word in enumerate(found):
        if parts[-1] and word.sign in BREAKS:
            parts.append([])
        if word.low in ("and", "but") and parts[-1] and begins_clause(found, i):
            parts.append([])
            continue
        if word.low in ("and", "but", "then", "so") and not parts[-1]:
            continue
        parts[-1].append(word)
    return [p for p in parts if p]


def begins_clause(found: Sequence[Word], i: int) -> bool:
    """Whether the "and" at this place begins another clause, not another thing."""
    following = found[i + 1 : i + 7]
    if not following:
        return True
    first = following[0]
    verb = lexicon.VERBS.get(first.low)
    if (
        first.low in lexicon.PRONOUNS
        or first.low in lexicon.ADVERBS
        or (verb is not None and not verb.forms & {"gerund"} and not first.capital)
    ):
        return True
    return any(w.low in lexicon.AUXILIARIES or (w.low in lexicon.VERBS and _finite(following, k)) for k, w in enumerate(following) if k)


def _until_end(found: Sequence[Word]) -> tuple[Word, ...]:
    """Up to the next comma or clause."""
    for i, word in enumerate(found):
        if word.sign in BREAKS or (i and word.low in ("and", "but") and begins_clause(found, i)):
            return tuple(found[:i])
    return tuple(found)


def _nothing(subject: Sequence[Word]) -> bool:
    return bool(subject) and subject[0].low in ("nothing", "nobody", "no", "none", "neither")


def _bare(subject: tuple[Word, ...], *, closed: bool) -> tuple[Word, ...]:
    """The subject without what was put before it: in "on the laptop I", "I"; an apposition that a comma closes stays."""
    for i in range(len(subject) - 1, 0, -1):
        if subject[i].low in ("i", "we") or (subject[i].sign in BREAKS and not closed):
            return subject[i:]
    return subject


def verb_at(found: Sequence[Word]) -> int | None:
    """Where the verb of the first clause begins."""
    for i, word in enumerate(found):
        if i and word.sign == ":":
            return None
        if word.low in lexicon.AUXILIARIES:
            if i and found[i - 1].low not in lexicon.PREPOSITIONS and found[i - 1].low not in ("the", "a", "my", "our"):
                return i
        elif (word.low in lexicon.VERBS and _finite(found, i)) or (
            i and _before(found, i) in lexicon.FIRST_PERSON and word.low not in lexicon.ADVERBS and word.low.isalpha()
        ):
            return i
    return _unlisted(found)


def _before(found: Sequence[Word], i: int) -> str:
    """The word before, adverbs left out."""
    i -= 1
    while i > 0 and found[i].low in lexicon.ADVERBS:
        i -= 1
    return found[i].low if i >= 0 else ""


def _finite(found: Sequence[Word], i: int) -> bool:
    """Whether this form can be the verb of the clause, next to what stands before and after it."""
    forms = lexicon.VERBS[found[i].low].forms
    if i == 0:
        return "past" in forms and len(found) > 1 and not found[1].low.startswith("of")
    before = _before(found, i)
    if (
        (before in lexicon.DETERMINERS and before not in ("this", "that", "these", "those", "all", "both"))
        or before in lexicon.PREPOSITIONS
        or before == "to"
    ):
        return False
    if found[i - 1].raw.endswith(("'s", "’s", "s'", "s’")):
        return False
    after = found[i + 1] if i + 1 < len(found) else None
    if (
        after is not None
        and found[i].low not in lexicon.NO_NOUNS
        and (after.low in lexicon.AUXILIARIES or _plain_finite(after))
        and not after.sign
        and not forms & {"past"}
    ):
        return False
    if "past" in forms:
        return True
    if "third" in forms:
        return before not in lexicon.FIRST_PERSON
    if "base" in forms:
        return (
            before in ("i", "we", "you", "they", "who")
            or (before.endswith("s") and not before.endswith(("ss", "us", "is")))
            or before in ("people", "children", "parents", "kids")
            or (i > 2 and found[1].low == "of" and found[0].low.endswith("s"))
        )
    return False


def _plain_finite(word: Word) -> bool:
    verb = lexicon.VERBS.get(word.low)
    return verb is not None and not verb.forms & {"gerund"} and ("past" in verb.forms or "base" in verb.forms) and not word.capital


def _unlisted(found: Sequence[Word]) -> int | None:
    """A verb that is in no list, by its ending and what follows: "the tram departs at nine"."""
    for i in range(1, len(found) - 1):
        low, after = found[i].low, found[i + 1]
        if (
            after.sign
            or found[i].sign
            or found[i - 1].low in lexicon.DETERMINERS
            or found[i - 1].low in lexicon.PREPOSITIONS
            or found[i].capital
        ):
            continue
        ending = (low.endswith("s") and not low.endswith(("ss", "us", "is", "'s"))) or low.endswith("ed")
        if (
            ending
            and len(low) > 3
            and (after.low in lexicon.DETERMINERS or after.digits or after.low in ("at", "on", "in", "to", "into", "with"))
        ):
            return i
    return None
