"""What a clause says of what: subject, attribute and values in normal form, and whether there is one value at a time.

Two wordings of the same thing should meet in one slot; where that is not safe they stay apart. When in doubt there may be many values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mnemon.memory.distil import lexicon, phrases
from mnemon.memory.distil.clauses import Word
from mnemon.memory.distil.phrases import USER, Phrase, phrase, shape


class Slot(NamedTuple):
    """A slot and what fills it. `rule` names the frame that was recognised; `changed` if the frame itself tells of a change."""

    rule: str
    subject: str = ""
    attribute: str = ""
    values: tuple[str, ...] = ()
    single: bool = False
    changed: bool = False
    old: str = ""


# "I live in Bergen" is about a home, whoever lives there.
VERB_ATTRIBUTES = {
    ("live", "in"): "home",
    ("live", "at"): "home",
    ("reside", "in"): "home",
    ("work", "at"): "employer",
    ("work", "for"): "employer",
    ("employ", "by"): "employer",
    ("call", ""): "name",
    ("name", ""): "name",
    ("marry", "to"): "spouse",
    ("expire", "in"): "expiry",
    ("expire", "on"): "expiry",
    ("listen", "on"): "port",
    ("drive", ""): "car",
    ("bank", "with"): "bank",
    ("allergic", "to"): "allergy",
    ("speak", ""): "language",
}
NOUN_ATTRIBUTES = {"residence": "home", "hometown": "home", "husband": "spouse", "wife": "spouse", "workplace": "employer"}
ONE = frozenset(phrases.plain(lexicon.ONE)) | {"home", "employer", "spouse", "expiry", "when", "where", "version", "port"}
MANY = frozenset(phrases.plain(lexicon.MANY))
ONE_VERBS = frozenset("end cost weigh measure expire last take start begin close open run go belong pay cover leave depart arrive".split())
BARE = 4  # words of a value that stands alone
PARTICLES = frozenset("over up off out back down away forward on".split())


def strength(found: Slot | None) -> int:
    """How much a slot says: 0 nothing, 1 words, 2 a name, 3 something that can be measured."""
    if found is None or not found.subject or not found.values or all(w.lower() in lexicon.GENERIC for w in found.values[0].split()):
        return 0
    kind = shape(found.values[0])
    return 1 if kind == "words" else 2 if kind == "name" else 3


def one_at_a_time(subject: Phrase, head: str, got: tuple[str, ...], *, first: str) -> bool:
    """Is there one at a time? Of a port yes, of a brother no; of other things if they are definite and the value is a name or number."""
    if head in MANY or subject.plural or len(got) > 1 or any(o in MANY for o in subject.owner[:1] if not subject.named and subject.mine):
        return head in ONE and not subject.plural and len(got) == 1
    if first in ("a", "an", "not", "no"):
        return head in ONE
    if head in ONE:
        return True
    if "favourite" in subject.owner or "favorite" in subject.owner:
        return True
    bare = not subject.definite and not subject.mine
    return shape(got[0]) != "words" and not (bare and shape(got[0]) == "name")


def typed(owner: str, got: tuple[str, ...]) -> Slot | None:
    """A value that says itself what it is: a day, a version, "port 80"."""
    if not owner:
        return None
    kind = shape(got[0])
    head, _, tail = got[0].partition(" ")
    if (
        tail
        and head.lower() in ("port", "level", "version", "room", "floor", "seat", "gate", "chapter", "page")
        and tail[:1].isalnum()
        and any(c.isdigit() for c in tail)
    ):
        value, _, thing = tail.partition(" of ")
        owner = " ".join(sorted({*owner.split(), *phrases.plain(thing.split())} - {USER})) or owner
        return Slot(rule="typed", subject=owner, attribute=head.lower(), values=(value,), single=owner != USER)
    if kind == "when" and owner != USER:
        return Slot(rule="typed", subject=owner, attribute="when", values=got, single=True)
    if kind == "version" and owner != USER:
        return Slot(rule="typed", subject=owner, attribute="version", values=got, single=True)
    return None


def bare(text: str, found: Sequence[Word]) -> Slot | None:
    """A value and nothing else: "Correction: 5433"."""
    got = phrases.values(text, found)
    return Slot(rule="bare", values=got[:1]) if got and len(found) <= BARE and shape(got[0]) not in ("words", "name") else None


def inverted(text: str, who: Sequence[Word], rest: Sequence[Word]) -> Slot:
    """Ann is the captain of the team: the team's captain is Ann."""
    rest = [w for w in rest if w.low != "now"]
    what = phrase(until_sign(rest))
    owner, head = what.slot
    return Slot(
        rule="copula_inverted",
        subject=owner,
        attribute=head,
        values=(text[who[0].start : who[-1].end],),
        single=head in ONE or (head not in MANY and not what.plural),
    )


def several(subject: Phrase) -> bool:
    """Somebody of whom there may be several, not called by name."""
    return subject.head in MANY


def definite_thing(subject: Phrase) -> bool:
    return (subject.definite or subject.named) and not subject.plural and subject.head not in MANY and not subject.pronoun


def after_adverbs(found: Sequence[Word]) -> Sequence[Word]:
    i = 0
    while i < len(found) and found[i].low in lexicon.ADVERBS and not (i and found[i].sign):
        i += 1
    return found[i:]


def until(found: Sequence[Word], stops: Sequence[str]) -> list[Word]:
    got: list[Word] = []
    for word in found:
        if word.low in stops:
            break
        got.append(word)
    return got


def until_sign(found: Sequence[Word]) -> list[Word]:
    got: list[Word] = []
    for word in found:
        if (got and word.sign) or (
            got and word.low in ("these", "now", "since", "because", "so", "and", "but", "until", "this", "today", "instead", "too", "when")
        ):
            break
        got.append(word)
    return got


def behind(text: str, found: Sequence[Word], preposition: str) -> str:
    """What stands behind a preposition."""
    for i, word in enumerate(found):
        if i and word.sign in (";", ":"):
            return ""
        if word.low == preposition:
            if preposition == "to" and i + 1 < len(found) and _infinitive(found[i + 1]):
                return ""
            got = phrases.values(text, found[i + 1 :])
            return got[0] if got else ""
    return ""


def _infinitive(word: Word) -> bool:
    verb = lexicon.VERBS.get(word.low)
    return verb is not None and "base" in verb.forms and not word.capital
