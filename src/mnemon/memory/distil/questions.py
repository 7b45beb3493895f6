"""What a question asks for: its kinds, the slots it may mean and its content words."""

from __future__ import annotations

import re

from mnemon.memory.distil import clauses, lexicon, patterns, phrases, readings, slots
from mnemon.memory.distil.clauses import Word
from mnemon.memory.statements import Asked, Asking

I = re.IGNORECASE  # noqa: E741 - a short name in a table of patterns

KINDS: tuple[tuple[Asking, re.Pattern[str]], ...] = (
    ("why", patterns.pattern(r"\bwhy\b|\breasons?\b|\bwhat\s+(?:made|caused|led)\b|\bhow\s+come\b|\bcause[ds]?\b|\bwhat\s+happened\b")),
    (
        "when",
        patterns.pattern(
            r"\bwhen\b|\bwhat\s+(?:day|date|time|year|month)\b|\bwhich\s+(?:day|date|year|month|week)\b|\bhow\s+long\b|\buntil\b|\bsince\b|\bfrom\s+what\s+day\b",
        ),
    ),
    (
        "before",
        patterns.pattern(
            r"\bbefore\b|\bprior\b|\bprevious(?:ly)?\b|\bearlier\b|\bformer(?:ly)?\b|\bused\s+to\b|\bfirst\b|\border\b|\bsequence\b"
        ),
    ),
    ("after", patterns.pattern(r"\bafter(?:wards)?\b|\blater\b|\bnext\b|\bthen\b|\bfollow(?:ed|ing)?\b|\border\b|\bsequence\b")),
    (
        "still",
        patterns.pattern(r"\bstill\b|\bany\s?more\b|\byet\b|\bcurrent(?:ly)?\b|\bnow(?:adays)?\b|\bthese\s+days\b|\bat\s+the\s+moment\b"),
    ),
    (
        "changed",
        patterns.pattern(
            r"\bchang(?:e[ds]?|ing)\b|\bdecid\w+\b|\bdecisions?\b|\bstory\b|\bhistory\b|\bevol\w+|\bswitch\w*|\bposition\b|\bmind\b|\bdirection\b|\bplans?\b|\brevers\w+|\bover\s+the\s+\w+\b",
        ),
    ),
    ("how_many", patterns.pattern(r"\bhow\s+(?:many|much|often)\b|\bnumber\s+of\b|\bcount\b|\btotal\b")),
    (
        "list_all",
        patterns.pattern(
            r"\b(?:list|all|every|everything|(?:which|what)\s+(?!is\b|was\b|does\b|has\b)\w+s|any\s+other|summar\w+|overview)\b|\bwhat\s+are\b|\bwho\s+are\b|\bwhat\s+(?:do|did)\s+(?:you|i|we)\s+know\b",
        ),
    ),
    ("who", patterns.pattern(r"\bwho(?:m|se|['’]s)?\b")),
    ("where", patterns.pattern(r"\bwhere\b|\bwhat\s+(?:city|country|place|town)\b|\bwhich\s+(?:city|country|place|town)\b")),
    ("which", patterns.pattern(r"\bwhich\b")),
    ("what", patterns.pattern(r"\bwhat\b")),
    ("how", patterns.pattern(r"\bhow\b(?!\s+(?:many|much|often|long|come))")),
)
WH = frozenset("what which who whom whose when where why how".split())
MOST = 6


def asked(text: str) -> Asked:
    """What a text asks for; a text that asks nothing has no kinds."""
    asking = (
        " ".join(
            s
            for s in re.split(r"(?<=[.!?])\s+", text[-2000:])
            if "?" in s or WH & set(s.lower().split()[:3]) or s.lower().startswith(("tell", "remind", "list"))
        )
        or ""
    )
    low = asking.lower()  # to look for small letters takes half as long as to look for any
    kinds = frozenset(kind for kind, pattern in KINDS if pattern.search(low))
    if not kinds and not asking:
        return Asked(terms=readings.terms(clauses.tokens(text[-2000:])))
    return Asked(
        kinds=kinds,
        slots=tuple(dict.fromkeys(_slots(asking)))[:MOST],
        terms=readings.terms(clauses.tokens(asking)),
    )


def _slots(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for sentence in re.split(
        r"[?;]\s*|,\s+(?=(?:and\s+)?(?:what|which|who|when|where|how)\b)|\s+and\s+(?=(?:what|which|who|when|where|how)\b)", text, flags=I
    ):
        words = clauses.tokens(sentence)
        at = next((i for i, w in enumerate(words) if w.low in WH or w.low.startswith(("what's", "who's", "where's", "when's"))), None)
        if at is not None:
            found += _asked_slot(words[at:])
        found += _possessed(words)
    return [s for s in found if s[0] and s[1]]


def _asked_slot(words: list[Word]) -> list[tuple[str, str]]:
    """What is my GP; which port does the mailer use; where do I live; who owns the account."""
    wh = words[0].low.split("'")[0]
    i = next((i for i, w in enumerate(words) if i and w.low in lexicon.AUXILIARIES), 0 if "'" in words[0].low else None)
    if i is None:
        verb = lexicon.VERBS.get(words[1].low) if len(words) > 1 else None
        what = phrases.phrase(words[2:])
        role = lexicon.ROLES.get(verb.lemma) if verb else None
        return [(what.whole, role)] if role else ([(what.whole, "owner"), what.slot] if verb and wh == "who" else [])
    of = phrases.plain(w.low for w in words[1:i])
    rest = words[i + 1 :]
    if len(rest) > 1 and rest[-1].low in ("called", "named"):
        what = phrases.phrase(rest[:-1])
        return [(what.whole, "name"), what.slot]
    verb_at = next((j for j, w in enumerate(rest) if j and w.low in lexicon.VERBS and "base" in lexicon.VERBS[w.low].forms), None)
    subject = phrases.phrase(rest[:verb_at] if verb_at is not None else rest)
    found: list[tuple[str, str]] = [(subject.whole, of[-1])] if of else []
    if verb_at is not None:
        lemma = lexicon.VERBS[rest[verb_at].low].lemma
        for preposition in [rest[-1].low if rest[-1].low in lexicon.PREPOSITIONS else "", "in", "at", ""]:
            attribute = slots.VERB_ATTRIBUTES.get((lemma, preposition))
            if attribute:
                found.append((subject.whole, attribute))
        found.append((subject.whole, " ".join(filter(None, [lemma, rest[-1].low if rest[-1].low in lexicon.PREPOSITIONS else ""]))))
    else:
        found.append(subject.slot)
    if wh in ("when", "where"):
        found.append((subject.whole, wh))
    return found


def _possessed(words: list[Word]) -> list[tuple[str, str]]:
    """Every "my X" of a question may be what it is about."""
    found = []
    for i, word in enumerate(words):
        if word.low in lexicon.MINE:
            tail: list[Word] = []
            for w in words[i : i + 6]:
                if tail and (w.sign or w.low in lexicon.AUXILIARIES or w.low in ("and", "or")):
                    break
                tail.append(w)
            found.append(phrases.phrase(tail).slot)
    return found
