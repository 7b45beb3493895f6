"""Clauses that tell how things are: what is, what somebody has or does, where and when."""

from __future__ import annotations

from collections.abc import Sequence

from mnemon.memory.distil import changes, lexicon, phrases, slots
from mnemon.memory.distil.clauses import Clause, Word
from mnemon.memory.distil.phrases import USER, Phrase, phrase, shape
from mnemon.memory.distil.slots import Slot


def commanded(text: str, clause: Clause) -> Slot | None:
    """Use port 80 for the mailer; deliver to Graz."""
    rest = clause.rest[1:] if clause.rest and clause.rest[0].low in lexicon.PREPOSITIONS else clause.rest
    got = phrases.values(text, rest)
    if not got:
        return None
    of = next((i for i, w in enumerate(rest) if w.low in ("for", "on")), None)
    what = phrase(rest[of + 1 :]) if of is not None else Phrase(head="")
    return (slots.typed(what.whole, got) if what.head else None) or Slot(rule="command", values=got)


def copula(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    rest = slots.after_adverbs(clause.rest)
    if not rest:
        return None
    first = rest[0].low
    if first in ("down", "up", "back") and len(rest) > 2 and rest[1].low == "to":  # "my weight is down to 79 kg"
        got = phrases.values(text, rest[2:])
        owner, head = subject.slot
        return (
            Slot(
                rule="copula",
                subject=owner,
                attribute=head,
                values=got,
                single=slots.one_at_a_time(subject, head, got, first=""),
                changed=True,
            )
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
        return slots.inverted(text, clause.subject, rest)
    if shape(text[clause.subject[0].start : clause.subject[-1].end]) == "when" and not rest[0].digits:
        return Slot(
            rule="copula_when",
            subject=phrase(rest).whole,
            attribute="when",
            values=(text[clause.subject[0].start : clause.subject[-1].end],),
        )
    owner, head = subject.slot
    head = slots.NOUN_ATTRIBUTES.get(head, head)
    return Slot(rule="copula", subject=owner, attribute=head, values=got, single=slots.one_at_a_time(subject, head, got, first=first))


def _am(got: tuple[str, ...], rest: Sequence[Word], subject: Phrase) -> Slot:
    """I am Ann Lee; it's Siv; we are vegetarians."""
    if subject.whole != USER:
        return Slot(rule="copula_pronoun", values=got)
    name = len(rest) > 1 and rest[0].capital and rest[1].capital and not rest[1].sign
    return Slot(rule="copula_self", subject=USER, attribute="name" if name else "is", values=got, single=name)


def _placed(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """It is on Friday, at 4.2.1, on port 80, in the attic."""
    preposition = rest[0].low
    start = 2 if preposition in ("due", "back") and len(rest) > 1 and rest[1].low in lexicon.PREPOSITIONS else 1
    got = phrases.values(text, rest[start:])
    if not got:
        return None
    owner = subject.whole
    return slots.typed(owner, got) or Slot(
        rule="placed",
        subject=owner,
        attribute="where" if preposition in ("in", "at", "on", "behind", "near", "under") else preposition,
        values=got,
        single=slots.definite_thing(subject)
        and preposition in ("in", "at", "on")
        and shape(got[0]) in ("name", "code", "number", "version"),
    )


def _adjective(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """Allergic to, married to, afraid of."""
    got = phrases.values(text, rest[2:])
    if not got:
        return None
    key = (rest[0].low, rest[1].low)
    attribute = slots.VERB_ATTRIBUTES.get(key) or f"{rest[0].low} {rest[1].low}"
    return Slot(rule="adjective", subject=subject.whole, attribute=attribute, values=got, single=attribute in slots.ONE)


def has(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    rest = slots.after_adverbs(clause.rest)
    got = phrases.values(text, rest)
    if not got or not subject.whole:
        return None
    head = phrase(slots.until_sign(rest)).head
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


def role(text: str, clause: Clause) -> Slot | None:
    """Ann leads the choir: the choir's lead is Ann."""
    what = phrase(slots.until_sign(clause.rest))
    if not what.head or clause.rest[0].low in ("a", "an", "some"):
        return None
    return Slot(
        rule="role",
        subject=what.whole,
        attribute=lexicon.ROLES[clause.verb],
        values=(text[clause.subject[0].start : clause.subject[-1].end],),
        single=not what.plural or what.definite,
    )


def verb(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Any other verb, with its object or with a preposition and what follows it."""
    rest = slots.after_adverbs(clause.rest)
    verb = clause.verb
    if verb == "take" and rest and rest[0].low == "place":
        verb, rest = "take place", rest[1:]
    preposition = ""
    if rest and (rest[0].low in lexicon.PREPOSITIONS or rest[0].low in slots.PARTICLES) and not rest[0].sign:
        preposition = rest[0].low
        rest = rest[1:]
        if rest and preposition in slots.PARTICLES and rest[0].low in ("to", "with", "at", "on") and not rest[0].sign:
            preposition, rest = f"{preposition} {rest[0].low}", rest[1:]
    if clause.verb in ("start", "begin", "take", "get", "accept", "land") and not preposition and (job := changes.job(text, rest, subject)):
        return job
    got = phrases.values(text, rest)
    owner = subject.whole
    if not got:
        return Slot(rule="verb", subject=owner, attribute=verb) if owner and not preposition else None
    present = (not clause.past and not clause.passive) or clause.verb in ("call", "name", "marry")
    attribute = slots.VERB_ATTRIBUTES.get((clause.verb, preposition))
    if attribute is not None and not (attribute == "name" and not clause.passive):
        got = tuple(v.split(" ", 1)[1] if attribute == "port" and v.lower().startswith("port ") else v for v in got)
        return Slot(
            rule="verb",
            subject=owner,
            attribute=attribute,
            values=got,
            single=attribute in slots.ONE and len(got) == 1 and present and not slots.several(subject),
        )
    typed = slots.typed(owner, got) if present else None
    if typed is not None:
        return typed._replace(attribute=f"{verb} {typed.attribute}" if typed.attribute == "when" else typed.attribute)
    habit = "" if clause.past or clause.passive else _habit(text, rest)
    if habit and shape(got[0]) == "words":
        attribute = " ".join(filter(None, [verb, preposition, *phrases.plain(got[0].split()), "when"]))
        return Slot(rule="habit", subject=owner, attribute=attribute, values=(habit,), single=owner != USER and not slots.several(subject))
    return _plain(clause if verb == clause.verb else clause._replace(verb=verb), subject, got=got, preposition=preposition)


def _habit(text: str, rest: Sequence[Word]) -> str:
    """On Tuesdays, at 7:30: when something is done that is done again and again."""
    for preposition in ("on", "at"):
        when = slots.behind(text, rest, preposition)
        if when and shape(when) == "when":
            return when
    return ""


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
        and (measure or clause.verb in slots.ONE_VERBS)
        and thing
        and not slots.several(subject)
    )
    return Slot(
        rule="verb",
        subject=subject.whole,
        attribute=attribute,
        values=got,
        single=single and (measure or (bool(preposition) and shape(got[0]) != "words")),
    )
