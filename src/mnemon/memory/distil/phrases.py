"""Noun phrases in normal form: "the replica's port", "the port of the replica" and "the replica port" are one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from mnemon.memory import words
from mnemon.memory.distil import clauses, lexicon, patterns
from mnemon.memory.distil.clauses import Word

USER = "user"
Shape = Literal["when", "version", "percent", "number", "code", "name", "words"]

WHEN = patterns.pattern(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|november|december|"
    r"(?:1[89]|20)\d\d-\d\d-\d\d|[0-2]?\d:[0-5]\d|\d{1,2}\s?(?:a\.?m|p\.?m)|noon|midnight|(?:19|20)\d\d$|tomorrow|q[1-4])\b",
)
DIGIT = patterns.pattern(r"\d")
VERSION = patterns.pattern(r"v?\d+(?:\.\d+){2,}$|(?:version|release)\s+v?\d")
PERCENT = patterns.pattern(r"\d[\d.,]*\s?(?:%|percent|per\s?cent)")
NUMBER = patterns.pattern(
    r"(?:(?:number|no\.?|nr\.?|level|about|around|roughly|almost|over)\s+)?(?:[$€£]\s?)?\d[\d.,]*\b|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|half|a\s(?:third|quarter))\b"
)
NO_VALUE = lexicon.PRONOUNS | {"here", "there", "me", "us", "him", "her", "them", "so", "back"}
OWN = frozenset({"mine", "ours"})
QUOTES = frozenset('"“„«')
QUOTED = patterns.pattern(r"[^\"“”„«»\n]{1,120}(?=[\"”“»])")
CODE = patterns.pattern(r"(?=\S*\d)(?=\S*[A-Za-z])\S+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A noun phrase: its head, what it belongs to (as stems), and how it is marked."""

    head: str
    owner: tuple[str, ...] = ()
    mine: bool = False
    theirs: bool = False
    definite: bool = False
    named: bool = False
    other: bool = False
    pronoun: str = ""
    third: str = ""
    plural: bool = False

    @property
    def slot(self) -> tuple[str, str]:
        """Subject and attribute, when the phrase says what somebody or something has: "my GP"."""
        return (" ".join(sorted(set(self.owner))) or self.third or USER, self.head)

    @property
    def whole(self) -> str:
        """The subject, when the phrase is what is spoken of."""
        if self.pronoun in ("i", "we", "me", "us"):
            return USER
        return " ".join(sorted({*self.owner, self.head} - {""}))


PRONOUNS = {low: Phrase(head="", pronoun=low) for low in ("", *lexicon.PRONOUNS)}
"""Nobody, and whom a pronoun names: half of all subjects."""


def phrase(found: Sequence[Word]) -> Phrase:
    """Take a noun phrase apart."""
    if not found:
        return PRONOUNS[""]
    if len(found) == 1 and found[0].low in lexicon.PRONOUNS:
        return PRONOUNS[found[0].low]
    first = found[0].low
    core, tail = _cut(found)
    owner: list[str] = []
    for i, word in enumerate(core):
        if word.low.endswith(("'s", "s'")) and i + 1 < len(core):
            owner += plain(w.low.removesuffix("'s").removesuffix("'") for w in core[: i + 1])
            core = core[i + 1 :]
            break
    kept = [
        w for w in core if w.low not in lexicon.DETERMINERS and w.low not in lexicon.NEW and w.low not in lexicon.OTHER and w.low != "more"
    ]
    head = plain([kept[-1].low])[-1:] if kept else []
    owner += plain(w.low for w in kept[:-1])
    owner += plain(w.low for w in tail if w.low not in OWN)
    last = kept[-1] if kept else None
    return Phrase(
        head=head[0] if head else "",
        owner=tuple(owner),
        mine=any(w.low in lexicon.MINE or w.low in OWN for w in found),
        third=first if first in lexicon.OTHERS else "",
        theirs=any(w.low in lexicon.OTHERS for w in found) and first not in lexicon.MINE,
        definite=first in ("the", "my", "our") or any(w.low.endswith(("'s", "s'")) for w in found),
        named=bool(kept) and all(w.capital for w in kept) and first not in lexicon.DETERMINERS,
        other=any(w.low in lexicon.OTHER for w in core),
        plural=last is not None and last.low.endswith("s") and not last.low.endswith(("ss", "us", "is")) and not last.capital,
    )


def own(text: str) -> bool:
    """Whether a few words name something of the speaker's, and not of somebody that they know."""
    found = text.lower().split()
    return (
        bool(found) and found[0] in ("my", "our", "i", "we", "i'm", "we're") and not any(singular(w) in lexicon.PEOPLE for w in found[1:])
    )


def _cut(found: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The phrase itself and what is hung on it with a preposition; an apposition between commas is neither."""
    core: list[Word] = []
    for i, word in enumerate(found):
        if i and word.sign in (",", "(", "–", "—", "-"):
            return core, []
        if i and word.low in ("of", "for", "at", "on", "in", "to", "with", "from", "behind", "between"):
            tail = [w for w in found[i + 1 :] if not w.sign and w.low not in lexicon.DETERMINERS and w.low not in lexicon.PREPOSITIONS]
            return core, tail
        core.append(word)
    return core, []


def plain(found: Iterable[str]) -> list[str]:
    """Words as slots name them: readable, in small letters and the singular, without the words that say nothing."""
    return [word for given in found if (word := singular(given)) and word not in words.STOPWORDS]


@lru_cache(maxsize=8192)
def singular(word: str) -> str:
    word = unicodedata.normalize("NFC", word).casefold().removesuffix("'s").removesuffix("’s").strip("'’")
    if len(word) < 4 or not word.isalpha() or word.endswith(("ss", "us", "is")) or word[-1] != "s":
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("sses", "shes", "ches", "xes", "zes")) else word[:-1]


@lru_cache(maxsize=4096)
def shape(value: str) -> Shape:
    """What kind of thing a value is: a change is between two of a kind."""
    low = value.lower()
    if WHEN.search(low):
        return "when"
    digits = DIGIT.search(low) is not None
    if digits and VERSION.match(low):
        return "version"
    if digits and PERCENT.search(low):
        return "percent"
    code = digits and CODE.match(value)
    if not code and NUMBER.match(low):
        return "number"
    if code:
        return "code"
    bare = value.removeprefix("the ").removeprefix("The ")
    return "name" if bare[:1].isupper() else "words"


def values(text: str, found: Sequence[Word]) -> tuple[str, ...]:
    """The things named right here, as written: up to where the next thing begins; several if "and" joins them."""
    if found and found[0].sign in QUOTES and (quoted := QUOTED.match(text, found[0].start)):
        return (quoted.group(),)
    got: list[list[Word]] = [[]]
    for i, word in enumerate(found):
        current = got[-1]
        if current and word.sign and not _same_thing(text, current[-1], word):
            break
        if word.low in ("and", "or") and current:
            if clauses.begins_clause(found, i):
                break
            got.append([])
            continue
        if _ends(found, i, current):
            break
        if not current and word.low in lexicon.DETERMINERS and word.raw != "The":
            continue
        if not current and word.low in lexicon.ADVERBS:
            continue
        current.append(word)
        if len(current) > 12:
            break
    return tuple(text[part[0].start : part[-1].end] for part in got if part and not (len(part) == 1 and part[0].low in NO_VALUE))


def _ends(found: Sequence[Word], i: int, current: list[Word]) -> bool:
    word = found[i]
    if (word.low not in lexicon.VALUE_ENDS and word.low != "to") or (word.capital and current):
        return False
    if not current:
        return word.low not in ("every", "each", "about", "this", "last", "next", "these", "on", "in", "at")
    numbers = i + 1 < len(found) and current[-1].digits and found[i + 1].digits
    return not (word.low == "to" and numbers)


def _same_thing(text: str, before: Word, word: Word) -> bool:
    """Dr. Osei, St. Olave's, e-mail: a full stop or hyphen that does not end the thing."""
    between = text[before.end : word.start]
    return between.strip() in (".", "-", "/", "&", "+", "'", '"', "“", "(") and not (between.strip() == "." and len(before.raw) > 4)
