"""What a clause says of what: subject, attribute and values in normal form, and whether there is one value at a time.

Two wordings of the same thing should meet in one slot; where that is not safe they stay apart. When in doubt there may be many values.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from mnemon.memory.distil import clauses, lexicon, phrases
from mnemon.memory.distil.clauses import Clause, Word
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
DETERMINER = re.compile(r"(?:my|our|the|a|an)\s+", re.IGNORECASE)
MOST_PARTS = 5  # of a sentence that are looked at
PARTICLES = frozenset("over up off out back down away forward on".split())


def best(text: str, found: Sequence[Word]) -> tuple[Clause | None, Slot | None]:
    """The clause of a sentence that says most, and its slot: "the office moved, deliveries go to Graz"."""
    clause = clauses.command(found) or clauses.parse(found)
    first = slot(text, clause) if clause else None
    if strength(first) > 1:
        return clause, first
    parts = clauses.segments(found)
    for part in parts[1:MOST_PARTS] if clause else parts[:MOST_PARTS]:
        verb = lexicon.VERBS.get(part[0].low)
        if clause and clause.subject and verb and not part[0].sign:  # "I left and work for": the same subject
            part = [*clause.subject, *part]  # noqa: PLW2901 - the part, completed
        other = clauses.parse(part)
        if other is None:
            continue
        found_slot = slot(text, other)
        if found_slot and found_slot.rule == "copula_pronoun" and clause and clause.subject:  # "the lead changed hands: it's Ann"
            found_slot = _of_subject(found_slot, phrase(clause.subject))
        if strength(found_slot) > strength(first):
            return other, found_slot
        clause = clause or other
        first = first or found_slot
    return clause, first


def strength(found: Slot | None) -> int:
    """How much a slot says: 0 nothing, 1 words, 2 a name, 3 something that can be measured."""
    if found is None or not found.subject or not found.values or all(w.lower() in lexicon.GENERIC for w in found.values[0].split()):
        return 0
    kind = shape(found.values[0])
    return 1 if kind == "words" else 2 if kind == "name" else 3


def _of_subject(found: Slot, subject: Phrase) -> Slot:
    if subject.pronoun or not subject.head:
        return found
    owner, head = subject.slot
    return found._replace(rule="copula", subject=owner, attribute=head, single=_one(subject, head, found.values, first=""), changed=True)


def slot(text: str, clause: Clause) -> Slot | None:
    """The slot that a clause fills; nothing if it has none that was understood."""
    subject = phrase(clause.subject)
    found = None
    if clause.command:
        found = _commanded(text, clause)
    elif clause.verb == "be":
        found = _copula(text, clause, subject)
    elif clause.verb == "become":
        found = _became(text, clause, subject)
    elif clause.verb == "have":
        found = _has(text, clause, subject)
    elif clause.verb in lexicon.ROLES and subject.named and not clause.past and not clause.passive:
        found = _role(text, clause)
    elif clause.verb in ("take", "hand", "turn", "pass") and clause.rest and any(w.low == "over" for w in clause.rest[:6]):
        found = _handed(text, clause, subject)
    elif clause.verb in lexicon.CHANGES or (clause.verb == "go" and clause.rest and clause.rest[0].low in ("up", "down")):
        found = _changed(text, clause, subject)
    if found is None:
        found = _verb(text, clause, subject)
    if found is None or not found.subject or not found.attribute:
        return None if found is None or not found.values else found._replace(subject="", attribute="", single=False)
    if subject.other or subject.theirs or clause.negated or (clause.past and not found.changed):
        found = found._replace(single=False)
    return found


def _commanded(text: str, clause: Clause) -> Slot | None:
    """Use port 80 for the mailer; deliver to Graz."""
    rest = clause.rest[1:] if clause.rest and clause.rest[0].low in lexicon.PREPOSITIONS else clause.rest
    got = phrases.values(text, rest)
    if not got:
        return None
    of = next((i for i, w in enumerate(rest) if w.low in ("for", "on")), None)
    what = phrase(rest[of + 1 :]) if of is not None else Phrase(head="")
    return (_typed(what.whole, got) if what.head else None) or Slot(rule="command", values=got)


def _copula(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    rest = _after_adverbs(clause.rest)
    if not rest:
        return None
    first = rest[0].low
    if first in ("down", "up", "back") and len(rest) > 2 and rest[1].low == "to":  # "my weight is down to 79 kg"
        got = phrases.values(text, rest[2:])
        owner, head = subject.slot
        return (
            Slot(rule="copula", subject=owner, attribute=head, values=got, single=_one(subject, head, got, first=""), changed=True)
            if got and head
            else None
        )
    if first in lexicon.PREPOSITIONS or first in ("due", "home", "back"):
        return _placed(text, rest, subject)
    if (
        len(rest) > 1
        and rest[1].low in ("to", "with", "at", "of", "in", "for", "about", "from")
        and not rest[0].digits
        and not rest[0].capital
    ):
        return _adjective(text, rest, subject)
    got = phrases.values(text, rest)
    if not got:
        return None
    if subject.pronoun:
        return _am(got, rest, subject)
    if subject.named and first in ("the", "our", "my", "now"):
        return _inverted(text, clause.subject, rest)
    if shape(text[clause.subject[0].start : clause.subject[-1].end]) == "when" and not rest[0].digits:
        return Slot(
            rule="copula_when",
            subject=phrase(rest).whole,
            attribute="when",
            values=(text[clause.subject[0].start : clause.subject[-1].end],),
        )
    owner, head = subject.slot
    head = NOUN_ATTRIBUTES.get(head, head)
    return Slot(rule="copula", subject=owner, attribute=head, values=got, single=_one(subject, head, got, first=first))


def _am(got: tuple[str, ...], rest: Sequence[Word], subject: Phrase) -> Slot:
    """I am Ann Lee; it's Siv; we are vegetarians."""
    if subject.whole != USER:
        return Slot(rule="copula_pronoun", values=got)
    name = len(rest) > 1 and rest[0].capital and rest[1].capital and not rest[1].sign
    return Slot(rule="copula_self", subject=USER, attribute="name" if name else "is", values=got, single=name)


def _one(subject: Phrase, head: str, got: tuple[str, ...], *, first: str) -> bool:
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


def _inverted(text: str, who: Sequence[Word], rest: Sequence[Word]) -> Slot:
    """Ann is the captain of the team: the team's captain is Ann."""
    rest = [w for w in rest if w.low != "now"]
    what = phrase(_until_sign(rest))
    owner, head = what.slot
    return Slot(
        rule="copula_inverted",
        subject=owner,
        attribute=head,
        values=(text[who[0].start : who[-1].end],),
        single=head in ONE or head not in MANY and not what.plural,
    )


def _placed(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """It is on Friday, at 4.2.1, on port 80, in the attic."""
    preposition = rest[0].low
    start = 2 if preposition in ("due", "back") and len(rest) > 1 and rest[1].low in lexicon.PREPOSITIONS else 1
    got = phrases.values(text, rest[start:])
    if not got:
        return None
    owner = subject.whole
    return _typed(owner, got) or Slot(
        rule="placed",
        subject=owner,
        attribute="where" if preposition in ("in", "at", "on", "behind", "near", "under") else preposition,
        values=got,
        single=_definite_thing(subject) and preposition in ("in", "at", "on") and shape(got[0]) in ("name", "code", "number", "version"),
    )


def _definite_thing(subject: Phrase) -> bool:
    return (subject.definite or subject.named) and not subject.plural and subject.head not in MANY and not subject.pronoun


def _typed(owner: str, got: tuple[str, ...]) -> Slot | None:
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


def _adjective(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """Allergic to, married to, afraid of."""
    got = phrases.values(text, rest[2:])
    if not got:
        return None
    key = (rest[0].low, rest[1].low)
    attribute = VERB_ATTRIBUTES.get(key) or f"{rest[0].low} {rest[1].low}"
    return Slot(rule="adjective", subject=subject.whole, attribute=attribute, values=got, single=attribute in ONE)


def _became(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    if not clause.rest or not subject.head:
        return None
    if subject.named and clause.rest[0].low in ("the", "our", "my"):
        return _inverted(text, clause.subject, clause.rest)._replace(changed=True)
    got = phrases.values(text, clause.rest)
    owner, head = subject.slot
    return (
        Slot(rule="became", subject=owner, attribute=head, values=got, changed=True, single=_one(subject, head, got, first=""))
        if got
        else None
    )


def _has(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    rest = _after_adverbs(clause.rest)
    got = phrases.values(text, rest)
    if not got or not subject.whole:
        return None
    head = phrase(_until_sign(rest)).head
    if head == "allergy" and any(w.low == "to" for w in rest):
        to = next(i for i, w in enumerate(rest) if w.low == "to")
        return Slot(rule="has_allergy", subject=subject.whole, attribute="allergy", values=phrases.values(text, rest[to + 1 :]))
    if rest[0].digits or shape(got[0]) == "number":  # how many of them
        noun = phrases.plain(w.low for w in rest[1:3])
        return Slot(
            rule="has_number",
            subject=subject.whole,
            attribute=" ".join(["have", *noun[:1]]),
            values=got,
            single=bool(noun) and len(got) == 1,
        )
    return Slot(rule="has", subject=subject.whole, attribute="have", values=got)


def _role(text: str, clause: Clause) -> Slot | None:
    """Ann leads the choir: the choir's lead is Ann."""
    what = phrase(_until_sign(clause.rest))
    if not what.head or clause.rest[0].low in ("a", "an", "some"):
        return None
    return Slot(
        rule="role",
        subject=what.whole,
        attribute=lexicon.ROLES[clause.verb],
        values=(text[clause.subject[0].start : clause.subject[-1].end],),
        single=not what.plural,
    )


def _handed(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Ann took the choir over from Bo; the choir was handed over to Ann; Ann took over as captain."""
    rest = [w for w in clause.rest if w.low != "over"]
    if clause.verb == "take":
        if not subject.named and not subject.pronoun:
            return None
        who = (text[clause.subject[0].start : clause.subject[-1].end],)
        old = _behind(text, rest, "from")
        if rest and rest[0].low == "as":
            what = phrase(_until_sign(_until(rest[1:], ("from", "at"))))
            return Slot(rule="took_over", subject=what.slot[0], attribute=what.head, values=who, changed=True, single=True, old=old)
        what = phrase(_until_sign(_until(rest, ("from", "at", "in", "on"))))
        return (
            Slot(rule="took_over", subject=what.whole, attribute="owner", values=who, changed=True, single=True, old=old)
            if what.head
            else None
        )
    what = subject if clause.passive else phrase(_until(rest, ("to",)))
    got = tuple(v for v in [_behind(text, rest, "to")] if v)
    return (
        Slot(rule="handed_over", subject=what.whole, attribute="owner", values=got, changed=True, single=True)
        if got and what.head
        else None
    )


def _changed(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Moved, raised, renamed (from the old value) to the new one; what moved is the object, or else the subject."""
    rest = list(clause.rest)
    new = _behind(text, rest, "to")
    if clause.verb in ("replace", "swap"):
        return _replaced(text, clause)
    if not new and clause.verb == "rename":
        new = _behind(text, rest, "as")
    if not new:
        return None
    old = _behind(text, rest, "from")
    thing = [w for w in _until(rest, ("to", "from", "back")) if w.low not in PARTICLES]
    what = phrase(_until_sign(thing)) if thing and not clause.passive else subject
    if clause.verb == "move" and what.whole == USER:
        return Slot(rule="changed", subject=USER, attribute="home", values=(new,), single=shape(new) == "name", changed=True, old=old)
    if not what.head:
        return Slot(rule="changed", values=(new,), changed=True, old=old)
    typed = _typed(what.whole, (new,))
    if typed is not None:
        return typed._replace(changed=True, old=old)
    if clause.verb == "rename":
        return Slot(rule="renamed", subject=what.whole, attribute="name", values=(new,), single=True, changed=True, old=old)
    if clause.verb in ("move", "relocate", "transfer"):
        return Slot(rule="changed", subject=what.whole, attribute="where", values=(new,), single=not what.plural, changed=True, old=old)
    owner, head = what.slot
    return Slot(
        rule="changed", subject=owner, attribute=head, values=(new,), single=shape(new) not in ("words", "name"), changed=True, old=old
    )


def _replaced(text: str, clause: Clause) -> Slot | None:
    """Replaced the old one with a new one; swapped the old one for a new one; the old one was replaced by a new one."""
    new = _behind(text, clause.rest, "by" if clause.passive else "for" if clause.verb == "swap" else "with")
    old = (
        (text[clause.subject[0].start : clause.subject[-1].end],)
        if clause.passive and clause.subject
        else phrases.values(text, clause.rest)
    )
    return Slot(rule="replaced", values=(new,), changed=True, old=DETERMINER.sub("", old[0])) if new and old else None


def _verb(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Any other verb, with its object or with a preposition and what follows it."""
    rest = _after_adverbs(clause.rest)
    verb = clause.verb
    if verb == "take" and rest and rest[0].low == "place":
        verb, rest = "take place", rest[1:]
    preposition = ""
    if rest and (rest[0].low in lexicon.PREPOSITIONS or rest[0].low in PARTICLES) and not rest[0].sign:
        preposition = rest[0].low
        rest = rest[1:]
        if rest and preposition in PARTICLES and rest[0].low in ("to", "with", "at", "on") and not rest[0].sign:
            preposition, rest = f"{preposition} {rest[0].low}", rest[1:]
    if clause.verb in ("start", "begin", "take", "get", "accept", "land") and not preposition and (job := _job(text, rest, subject)):
        return job
    got = phrases.values(text, rest)
    owner = subject.whole
    if not got:
        return Slot(rule="verb", subject=owner, attribute=verb) if owner and not preposition else None
    present = not clause.past and not clause.passive or clause.verb in ("call", "name", "marry")
    attribute = VERB_ATTRIBUTES.get((clause.verb, preposition))
    if attribute is not None and not (attribute == "name" and not clause.passive):
        got = tuple(v.split(" ", 1)[1] if attribute == "port" and v.lower().startswith("port ") else v for v in got)
        return Slot(
            rule="verb",
            subject=owner,
            attribute=attribute,
            values=got,
            single=attribute in ONE and len(got) == 1 and present and not _several(subject),
        )
    typed = _typed(owner, got) if present else None
    if typed is not None:
        return typed._replace(attribute=f"{verb} {typed.attribute}" if typed.attribute == "when" else typed.attribute)
    habit = "" if clause.past or clause.passive else _habit(text, rest)
    if habit and shape(got[0]) == "words":
        attribute = " ".join(filter(None, [verb, preposition, *phrases.plain(got[0].split()), "when"]))
        return Slot(rule="habit", subject=owner, attribute=attribute, values=(habit,), single=owner != USER and not _several(subject))
    return _plain(clause._replace(verb=verb), subject, got=got, preposition=preposition)


def _habit(text: str, rest: Sequence[Word]) -> str:
    """On Tuesdays, at 7:30: when something is done that is done again and again."""
    for preposition in ("on", "at"):
        when = _behind(text, rest, preposition)
        if when and shape(when) == "when":
            return when
    return ""


def _job(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """Started a new job at."""
    at = next((i for i, w in enumerate(rest[:6]) if w.low in ("at", "with")), None)
    if at is None or not any(w.low in ("job", "position", "role", "post") for w in rest[:at]):
        return None
    got = phrases.values(text, rest[at + 1 :])
    return Slot(rule="job", subject=subject.whole, attribute="employer", values=got, single=True, changed=True) if got else None


def _plain(clause: Clause, subject: Phrase, *, got: tuple[str, ...], preposition: str) -> Slot:
    measure = shape(got[0]) in ("number", "percent", "code")
    of: list[str] = []
    parts = got[0].split(" of ", 1)
    if measure and len(parts) == 2:
        of = phrases.plain(parts[1].split())
    attribute = " ".join(filter(None, [clause.verb, preposition, *of]))
    thing = not subject.pronoun or bool(of)
    single = (
        not clause.past
        and not clause.passive
        and len(got) == 1
        and (measure or clause.verb in ONE_VERBS)
        and thing
        and not _several(subject)
    )
    return Slot(
        rule="verb",
        subject=subject.whole,
        attribute=attribute,
        values=got,
        single=single and (measure or bool(preposition) and shape(got[0]) != "words"),
    )


def _several(subject: Phrase) -> bool:
    """Somebody of whom there may be several, not called by name."""
    return subject.head in MANY


def _after_adverbs(found: Sequence[Word]) -> Sequence[Word]:
    i = 0
    while i < len(found) and found[i].low in lexicon.ADVERBS and not (i and found[i].sign):
        i += 1
    return found[i:]


def _until(found: Sequence[Word], stops: Sequence[str]) -> list[Word]:
    got: list[Word] = []
    for word in found:
        if word.low in stops:
            break
        got.append(word)
    return got


def _until_sign(found: Sequence[Word]) -> list[Word]:
    got: list[Word] = []
    for word in found:
        if (
            got
            and word.sign
            or (
                got
                and word.low in ("these", "now", "since", "because", "so", "and", "but", "until", "this", "today", "instead", "too", "when")
            )
        ):
            break
        got.append(word)
    return got


def _behind(text: str, found: Sequence[Word], preposition: str) -> str:
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
