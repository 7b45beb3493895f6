"""The bones of a clause: who, does what, and what comes after it. No grammar book: word forms and their neighbours decide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mnemon.memory import words
from mnemon.memory.distil import lexicon

WORD = re.compile(r"[^\W_][\w]*(?:[-'’.:/@+&,_]\w+)*(?:s['’](?=\s)|%)?|[$€£]\s?\d[\d.,]*\w*")
MOST_WORDS = 60  # of a clause; more is no clause


@dataclass(frozen=True, slots=True)
class Word:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause that was understood. `passive`: a participle behind a form of "to be", as in "was moved" or "is called"."""

    subject: tuple[Word, ...]
    verb: str
    rest: tuple[Word, ...]
    past: bool = False
    passive: bool = False
    going: bool = False
    negated: bool = False
    modal: str = ""


def tokens(text: str, start: int = 0) -> list[Word]:
    found: list[Word] = []
    last = start
    for match in WORD.finditer(text, start):
        low = match.group().lower().replace("’", "'")
        sign = text[last : match.start()].strip()[:1]
        last = match.end()
        if low in lexicon.CONTRACTIONS:
            one, two = lexicon.CONTRACTIONS[low]
            middle = match.start() + len(match.group().replace("’", "'").split("'")[0])
            found.append(Word(match.group()[: middle - match.start()], one, match.start(), middle, sign))
            found.append(Word(two, two, middle, match.end(), ""))
        else:
            found.append(Word(match.group(), low, match.start(), match.end(), sign))
        if len(found) > MOST_WORDS:
            break
    return found


def parse(found: Sequence[Word]) -> Clause | None:
    """The first clause of these words; nothing if no verb was recognised."""
    at = verb_at(found)
    if at is None:
        return None
    first = found[at].low
    i = at
    negated = modal_negated = False
    while i < len(found) and (found[i].low in lexicon.AUXILIARIES or (i > at and found[i].low in lexicon.ADVERBS)):
        if i > at and found[i].sign:
            break
        negated = negated or found[i].low in lexicon.NEGATIONS
        i += 1
    j = at - 1
    while j > 0 and found[j].low in lexicon.ADVERBS:
        negated = negated or found[j].low in lexicon.NEGATIONS
        j -= 1
    subject = tuple(found[: j + 1])
    del modal_negated
    auxiliaries = [w.low for w in found[at:i] if w.low in lexicon.AUXILIARIES]
    main = lexicon.VERBS.get(found[i].low) if i < len(found) and not (found[i].sign and i > at) else None
    be = any(a in lexicon.BE or a in ("isn't", "aren't", "wasn't", "weren't") for a in auxiliaries)
    past = any(a in ("was", "were", "had", "did", "didn't", "wasn't", "weren't") for a in auxiliaries)
    modal = next((a for a in auxiliaries if a in lexicon.MODALS), "")
    perfect = any(a in lexicon.HAVE or a in ("hasn't", "haven't", "hadn't") for a in auxiliaries)
    shape = {"past": past, "negated": negated or _nothing(subject), "modal": modal, "subject": _bare(subject)}
    if not auxiliaries:
        past = "past" in main.forms and not ("base" in main.forms and first == main.lemma) if main else first.endswith("ed")
        shape["past"] = past
        return Clause(verb=main.lemma if main else words.stem(first), rest=tuple(found[i + 1 :]), **shape)  # type: ignore[arg-type]
    if be and main and "gerund" in main.forms:
        return Clause(verb=main.lemma, rest=tuple(found[i + 1 :]), going=True, **shape)  # type: ignore[arg-type]
    if be and main and "participle" in main.forms:
        return Clause(verb=main.lemma, rest=tuple(found[i + 1 :]), passive=True, **shape)  # type: ignore[arg-type]
    if main and not be and (("participle" in main.forms and perfect) or ("base" in main.forms and not perfect)):
        shape["past"] = past or perfect
        return Clause(verb=main.lemma, rest=tuple(found[i + 1 :]), **shape)  # type: ignore[arg-type]
    if be or perfect:
        return Clause(verb="be" if be else "have", rest=tuple(found[i:]), **shape)  # type: ignore[arg-type]
    if i < len(found) and not found[i].sign:  # "I can't stand it": a verb that is in no list
        return Clause(verb=words.stem(found[i].low), rest=tuple(found[i + 1 :]), **shape)  # type: ignore[arg-type]
    return None


def _nothing(subject: Sequence[Word]) -> bool:
    return bool(subject) and subject[0].low in ("nothing", "nobody", "no", "none", "neither")


def _bare(subject: tuple[Word, ...]) -> tuple[Word, ...]:
    """The subject without what was put before it: in "on the laptop I", "I"."""
    for i in range(len(subject) - 1, 0, -1):
        if subject[i].low in ("i", "we"):
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
        elif word.low in lexicon.VERBS and _finite(found, i):
            return i
        elif i and _before(found, i) in lexicon.FIRST_PERSON and word.low not in lexicon.ADVERBS and word.low.isalpha():
            return i
    return _unlisted(found)


def _before(found: Sequence[Word], i: int) -> str:
    """The word before, adverbs left out."""
    i -= 1
    while i > 0 and found[i].low in lexicon.ADVERBS:
        i -= 1
    return found[i].low if i >= 0 else ""


def _finite(found: Sequence[Word], i: int) -> bool:
    """Can this form be the verb of the clause, next to what stands before and after it?"""
    forms = lexicon.VERBS[found[i].low].forms
    if i == 0:
        return "past" in forms and len(found) > 1 and not found[1].low.startswith("of")
    before = _before(found, i)
    if before in lexicon.DETERMINERS and before not in ("this", "that", "these", "those", "all", "both") or before in lexicon.PREPOSITIONS or before == "to":
        return False
    if found[i - 1].raw.endswith(("'s", "’s", "s'", "s’")):
        return False
    after = found[i + 1] if i + 1 < len(found) else None
    if after is not None and (after.low in lexicon.AUXILIARIES or _plain_finite(after)) and not after.sign and not forms & {"past"}:
        return False
    if "past" in forms:
        return True
    if "third" in forms:
        return before not in lexicon.FIRST_PERSON
    if "base" in forms:
        return before in ("i", "we", "you", "they", "who") or (before.endswith("s") and not before.endswith(("ss", "us", "is"))) or before in ("people", "children", "parents", "kids")
    return False


def _plain_finite(word: Word) -> bool:
    verb = lexicon.VERBS.get(word.low)
    return verb is not None and not verb.forms & {"gerund"} and ("past" in verb.forms or "base" in verb.forms) and not word.capital


def _unlisted(found: Sequence[Word]) -> int | None:
    """A verb that is in no list, by its ending and what follows: "the tram departs at nine"."""
    for i in range(1, len(found) - 1):
        low, after = found[i].low, found[i + 1]
        if after.sign or found[i].sign or found[i - 1].low in lexicon.DETERMINERS or found[i - 1].low in lexicon.PREPOSITIONS or found[i].capital:
            continue
        ending = (low.endswith("s") and not low.endswith(("ss", "us", "is", "'s"))) or low.endswith("ed")
        if ending and len(low) > 3 and (after.low in lexicon.DETERMINERS or after.digits or after.low in ("at", "on", "in", "to", "into", "with")):
            return i
    return None
