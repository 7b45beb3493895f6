"""Which frame a clause has, and which clause of a sentence says most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mnemon.memory.distil import changes, clauses, lexicon, slots, states
from mnemon.memory.distil.clauses import Clause, Word
from mnemon.memory.distil.phrases import Phrase, phrase
from mnemon.memory.distil.slots import Slot

MOST_PARTS = 5  # of a sentence that are looked at


def best(text: str, found: Sequence[Word]) -> tuple[Clause | None, Slot | None]:
    """The clause of a sentence that says most, and its slot: "the office moved, deliveries go to Graz"."""
    if len(found) > 4 and (new := changes.another(text, found)):
        return clauses.parse(found), new
    clause = clauses.command(found) or clauses.parse(found)
    first = slot(text, clause) if clause else None
    if slots.strength(first) > 1:
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
            found_slot = _of_subject(found_slot, _changed_thing(clause))
        if slots.strength(found_slot) > slots.strength(first):
            return other, found_slot
        clause = clause or other
        first = first or found_slot
    return clause, first


def _changed_thing(clause: Clause) -> Phrase:
    """What "it" is behind a change: the lead that changed hands; the dentist whom I changed."""
    subject = phrase(clause.subject)
    if not subject.pronoun or clause.verb not in lexicon.CHANGES:
        return subject
    thing = phrase(slots.until_sign(clause.rest))
    return replace(thing, plural=False, mine=True, definite=True) if thing.head else subject


def _of_subject(found: Slot, subject: Phrase) -> Slot:
    if subject.pronoun or not subject.head:
        return found
    owner, head = subject.slot
    return found._replace(
        rule="copula", subject=owner, attribute=head, single=slots.one_at_a_time(subject, head, found.values, first=""), changed=True
    )


def slot(text: str, clause: Clause) -> Slot | None:
    """The slot that a clause fills; nothing if it has none that was understood."""
    subject = phrase(clause.subject)
    found = None
    if clause.command:
        found = states.commanded(text, clause)
    elif clause.verb == "be":
        found = states.copula(text, clause, subject)
    elif clause.verb == "become":
        found = changes.became(text, clause, subject)
    elif clause.verb == "have":
        found = states.has(text, clause, subject)
    elif clause.verb in lexicon.ROLES and subject.named and not clause.past and not clause.passive:
        found = states.role(text, clause)
    elif clause.verb in ("take", "hand", "turn", "pass") and clause.rest and any(w.low == "over" for w in clause.rest[:6]):
        found = changes.handed(text, clause, subject)
    elif clause.verb in lexicon.CHANGES or (clause.verb == "go" and clause.rest and clause.rest[0].low in ("up", "down")):
        found = changes.changed(text, clause, subject)
    if found is None:
        found = states.verb(text, clause, subject)
    if found is None or not found.subject or not found.attribute:
        return None if found is None or not found.values else found._replace(subject="", attribute="", single=False)
    if found.single and (subject.other or subject.theirs or clause.negated or (clause.past and not found.changed)):
        found = found._replace(single=False)
    return found
