"""Words of a text as the full-text index knows them: folded, stemmed a little, in any script."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"\w+")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+")
RUN = re.compile(rf"{CJK.pattern}|{CJK.pattern.replace('[', '[^')}")  # of one kind or the other: people write 用Rust写 without blanks
LONGEST = 64
REMEMBERED = 4000

STOPWORDS = frozenset(
    "a about again all also am an and any are as at be been but by can could did do does doing don for from had has have he her him his how"
    " i if in into is it its just ll m me my no not of on or our out please re s said say she should so some t than that the their them"
    " then there these they this to too up us ve was we were what when where which who whom why will with would yes you your".split()
)


def words(text: str) -> tuple[str, ...]:
    """The words of a text in order, stopwords and monsters left out."""
    return remembered(text) if len(text) <= REMEMBERED else found_in(text)


def found_in(text: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in WORD.findall(text):
        if len(word) <= LONGEST:
            found.extend(normal(word))
        elif CJK.search(word):  # a sentence, not a monster
            for start in range(0, len(word) - 1, LONGEST - 1):
                found.extend(normal(word[start : start + LONGEST]))
    return tuple(found)


remembered = lru_cache(maxsize=64)(found_in)  # a message is first asked with and then indexed


@lru_cache(maxsize=16384)
def normal(word: str) -> tuple[str, ...]:
    """What a word is indexed as: nothing, itself without accents and endings, or the pairs of characters of a script without spaces."""
    if word.isascii():
        folded = word.lower()
        return () if folded in STOPWORDS else (stem(folded),)
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    folded = "".join(c for c in folded if not unicodedata.combining(c))
    folded = "".join(WORD.findall(unicodedata.normalize("NFC", folded)))
    if CJK.search(folded):
        return tuple(found for run in RUN.findall(folded) for found in (pairs(run) if CJK.match(run) else normal(run)))
    if not folded or folded in STOPWORDS:
        return ()
    return (stem(folded),)


def pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(max(1, len(run) - 1))]


def stem(word: str) -> str:
    """Cut the commonest English endings; anything with a digit stays as it is."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    for ending, rest in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + rest
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" else word
