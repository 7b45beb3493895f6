"""Sentences: where they end, which of them ask, and the turns of phrase that change what a statement is worth.

English, as far as it goes by wording. It knows nothing of what a sentence is about.
"""

from __future__ import annotations

import re

from mnemon.model.builtin import patterns

_ABBREVIATION = patterns.lazy(r"(?:\b(?:dr|mr|mrs|ms|prof|st|vs|no|approx|e\.g|i\.e|inc|ltd|jr|sr|vol|fig|ca)|\b[A-Z])\.$", re.IGNORECASE)
_END = patterns.lazy(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s++[^a-z])|[。！？]++")
_FENCE = patterns.lazy(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = patterns.lazy(r"^\s*(?:[-*•>]|\d{1,2}[.)]|#{1,6})\s+")


def cut(text: str) -> list[str]:
    """The sentences of a text, without list marks and without fenced code."""
    found: list[str] = []
    for raw in _FENCE().sub("\n", text).splitlines() if "```" in text else text.splitlines():
        line, start = _BULLET().sub("", raw), 0
        for end in _END().finditer(line):
            if not _ABBREVIATION().search(line, max(start, end.end() - 8), end.end()):
                found.append(line[start : end.end()].strip())
                start = end.end()
        found.append(line[start:].strip())
    return [s for s in found if s]


WH = r"(?:in |on |at |from |to |since |until |for |by )?(?:what|which|who|whom|whose|why|where|how|when)"
_ASKS = patterns.lazy(
    r"^(?:(?:and|so|but|ok|okay|hey|hi|well|now|also|then|please|sorry|hm+|quick question)[,:]?\s+)*(?:"
    rf"{WH}(?:['’]s|['’]re)?\b(?!\s+(?:i|we|you|he|she|it|they|a|an|the)\b)(?!\s+is\s+(?:why|how|what)\b)"
    r"|(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|am)\s+"
    r"(?:i|we|you|he|she|it|they|there|this|that|my|our|your|the|any|anyone|anything)\b"
    r"|i(?:['’]d like to know|['’]m wondering| wonder| forgot| forget| (?:want|need|would like) to know"
    rf"| (?:can['’]t|cannot|don['’]t) (?:remember|recall)),?\s+(?:my name|if|whether|{WH}))",
    re.IGNORECASE,
)
TELL_ME = patterns.lazy(
    r"^(?:(?:and|so|ok|okay|now|please|then|also)[,:]?\s+)*(?:(?:tell|show|give|remind|refresh)\s+(?:me|us|my memory)\b(?!\s+to\b)"
    r"|(?:list|summari[sz]e|recap|review|recall|identify|describe|explain|compare|analy[sz]e|prepare|find|report on|name)\s+"
    r"(?:me|us|the|all|our|my|what|how|which|why|every|everything|any|a|an|one|two|three|some|your)\b)",
    re.IGNORECASE,
)
_TIME_CLAUSE = patterns.lazy(r"^when\s+(?!is|are|was|were|do|does|did|will|can|should|has|have|had)", re.IGNORECASE)


def is_question(sentence: str) -> bool:
    """Whether somebody wants to know something, with or without a question mark, or as a command to tell it."""
    if sentence.rstrip("\"'”’)]* ").endswith(("?", "？", "؟")) or TELL_ME().match(sentence):
        return True
    return bool(_ASKS().match(sentence)) and not sentence.endswith("!") and not _TIME_CLAUSE().match(sentence)


SUPPOSED = patterns.lazy(
    r"\b(?:what if|suppos(?:e|ing)|imagine|hypothetically|would|if|might|maybe|perhaps|for example|could)\b", re.IGNORECASE
)
CHANGES = patterns.lazy(
    r"\b(?:no|not|sorry|correction|typo|wrong|instead|now|chang(?:e|ed|es)|moved?|actually|meant|misread|after all|no longer|any ?more"
    r"|these days|switched|as well|too|also|bumped|upgraded|renamed|replaced|handed over|took over|cancell?ed|scrap|as of|from now on)\b",
    re.IGNORECASE,
)
FIRST_PERSON = patterns.lazy(r"\b(?:I|my|we|our|me|us|mine)\b", re.IGNORECASE)
POINTING = patterns.lazy(r"\b(?:it|its|he|she|him|her|his|they|them|their|this|that|these|those)\b", re.IGNORECASE)
_LEAD = patterns.lazy(
    r"^(?:(?:please|also|just|and|noted|ok|okay|so|btw|by the way|fyi|for the record|for your information)[,:]?\s+)*"
    r"(?:remember|note|keep in mind|bear in mind|be aware|don['’]t forget)(?:\s+that|,|:)\s+"
    r"|^(?:noted|note|fyi|btw|for the record|heads[- ]up):\s+",
    re.IGNORECASE,
)


def bare(sentence: str) -> str:
    """A statement without the words that only hand it over, such as "please remember that"."""
    rest = _LEAD().sub("", sentence, count=1)
    return rest if rest == sentence else rest[:1].upper() + rest[1:]
