"""Clauses that tell of a change: what has another value, and which it had before."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mnemon.memory.distil import lexicon, patterns, phrases, slots
from mnemon.memory.distil.clauses import Clause, Word
from mnemon.memory.distil.phrases import USER, Phrase, phrase, shape
from mnemon.memory.distil.slots import Slot

DETERMINER = patterns.pattern(r"(?:my|our|the|a|an)\s+", re.IGNORECASE)


def became(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    if not clause.rest or not subject.head:
        return None
    if subject.named and clause.rest[0].low in ("the", "our", "my"):
        return slots.inverted(text, clause.subject, clause.rest)._replace(changed=True)
    got = phrases.values(text, clause.rest)
    owner, head = subject.slot
    return (
        Slot(
            rule="became", subject=owner, attribute=head, values=got, changed=True, single=slots.one_at_a_time(subject, head, got, first="")
        )
        if got
        else None
    )


def job(text: str, rest: Sequence[Word], subject: Phrase) -> Slot | None:
    """Started a new job at."""
    at = next((i for i, w in enumerate(rest[:6]) if w.low in ("at", "with")), None)
    if at is None or not any(w.low in ("job", "position", "role", "post") for w in rest[:at]):
        return None
    got = phrases.values(text, rest[at + 1 :])
    return Slot(rule="job", subject=subject.whole, attribute="employer", values=got, single=True, changed=True) if got else None


def handed(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Ann took the choir over from Bo; the choir was handed over to Ann; Ann took over as captain."""
    rest = [w for w in clause.rest if w.low != "over"]
    if clause.verb == "take":
        if not subject.named and not subject.pronoun:
            return None
        who = (text[clause.subject[0].start : clause.subject[-1].end],)
        old = slots.behind(text, rest, "from")
        post = next((i for i, w in enumerate(rest[:6]) if w.low == "as"), None)
        if post is not None and rest[0].low in ("as", "from"):
            what = phrase(slots.until_sign(slots.until(rest[post + 1 :], ("from", "at"))))
            return Slot(rule="took_over", subject=what.slot[0], attribute=what.head, values=who, changed=True, single=True, old=old)
        what = phrase(slots.until_sign(slots.until(rest, ("from", "at", "in", "on"))))
        return (
            Slot(rule="took_over", subject=what.whole, attribute="owner", values=who, changed=True, single=True, old=old)
            if what.head
            else None
        )
    what = subject if clause.passive else phrase(slots.until(rest, ("to",)))
    got = tuple(v for v in [slots.behind(text, rest, "to")] if v)
    return (
        Slot(rule="handed_over", subject=what.whole, attribute="owner", values=got, changed=True, single=True)
        if got and what.head
        else None
    )


def changed(text: str, clause: Clause, subject: Phrase) -> Slot | None:
    """Moved, raised, renamed (from the old value) to the new one; what moved is the object, or else the subject."""
    rest = list(clause.rest)
    new = slots.behind(text, rest, "to")
    if clause.verb in ("replace", "swap"):
        return _replaced(text, clause)
    if not new and clause.verb == "rename":
        new = slots.behind(text, rest, "as")
    if not new and clause.verb == "reach":
        reached = slots.typed(subject.whole, phrases.values(text, rest)) if rest else None
        return reached._replace(changed=True) if reached else None
    if not new:
        return None
    old = slots.behind(text, rest, "from")
    thing = [w for w in slots.until(rest, ("to", "from", "back")) if w.low not in slots.PARTICLES]
    what = phrase(slots.until_sign(thing)) if thing and not clause.passive else subject
    if clause.verb == "move" and what.whole == USER:
        return Slot(rule="changed", subject=USER, attribute="home", values=(new,), single=shape(new) == "name", changed=True, old=old)
    if not what.head:
        return Slot(rule="changed", values=(new,), changed=True, old=old)
    typed = slots.typed(what.whole, (new,))
    if typed is not None:
        return typed._replace(changed=True, old=old)
    if clause.verb == "rename":
        return Slot(rule="renamed", subject=what.whole, attribute="name", values=(new,), single=True, changed=True, old=old)
    if clause.verb == "move" and what is subject and (subject.head in lexicon.PEOPLE or subject.pronoun):
        return Slot(rule="changed", subject=what.whole, attribute="home", values=(new,), single=shape(new) == "name", changed=True, old=old)
    if clause.verb in ("move", "relocate", "transfer"):
        return Slot(rule="changed", subject=what.whole, attribute="where", values=(new,), single=not what.plural, changed=True, old=old)
    owner, head = what.slot
    return Slot(rule="changed", subject=owner, attribute=head, values=(new,), single=_one(what, new), changed=True, old=old)


def another(text: str, found: Sequence[Word]) -> Slot | None:
    """We have a new accountant, Beck and Partners: somebody or something else in a place that had somebody before."""
    for i in range(1, len(found) - 2):
        head, after = found[i + 1], i + 2
        while after < len(found) - 1 and found[after].low in ("now", "today") and not found[after].sign:
            after += 1
        new = found[i].low in ("new", "different") and found[i - 1].low in ("a", "another")
        new = new or (found[i].low == "another" and found[i - 1].low == "to")
        if new and found[after].sign in (",", ":") and not head.sign:
            got = phrases.values(text, [w for w in found[after:] if w.low not in ("it", "is", "called", "named")])
            if got and shape(got[0]) == "name" and head.low.isalpha() and not head.capital:
                return Slot(rule="another", subject=USER, attribute=phrases.plain([head.low])[-1], values=got, single=True, changed=True)
    return None


def _one(what: Phrase, new: str) -> bool:
    """Whether what was changed has one value: my inhaler has, what we move and convert in general has not."""
    return shape(new) not in ("words", "name") or (what.mine and shape(new) == "name" and not what.plural and not slots.several(what))


def _replaced(text: str, clause: Clause) -> Slot | None:
    """Replaced the old one with a new one; swapped the old one for a new one; the old one was replaced by a new one."""
    new = slots.behind(text, clause.rest, "by" if clause.passive else "for" if clause.verb == "swap" else "with")
    old = (
        (text[clause.subject[0].start : clause.subject[-1].end],)
        if clause.passive and clause.subject
        else phrases.values(text, clause.rest)
    )
    return Slot(rule="replaced", values=(new,), changed=True, old=DETERMINER.sub("", old[0])) if new and old else None
