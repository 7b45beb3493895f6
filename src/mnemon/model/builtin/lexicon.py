"""Words and their stems: the one measure by which a question and a statement are compared.

English by table, other languages by their words alone. It knows nothing of sentences or meaning.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from mnemon.model.builtin import patterns

STOP = frozenset(
    """a about after again against ago all already also always am an and any anyone anything anyway are aren't as at back be because been
    before being between brief but by came can can't chat come concise conversation could couldn't currently describe detail details did
    didn't discuss discussed do does doesn't doing don't done during each earlier engineering even ever every everything exactly explain
    for from gave get getting give given go goes going gone got had happen happened happens has hasn't have haven't he her here hers him
    his how how's i i'd i'll i'm i've if important in instead into is isn't it it's its just know later let let's list lot made major
    make makes many me mean memory mention mentioned mine more much must my never no not now of off ok on once one only or other our out
    over per please question quite really recall recent remember remind report said say says shall she should shouldn't show since so
    some soon still stored story summarise summarize summary talk talked technical tell than that that's the their them then there
    there's these they thing things think this those though thought through to told too under until up us very via was wasn't we we'd
    we'll we're we've week went were weren't what what's when when's where where's whether which while who who's whom whose why why's
    will with within without won't would wouldn't yet you you're you've your yours""".split()
)

# What says only which sort of thing is asked for: it counts in full where the question has nothing better.
WEAK_WORDS = """big called change choose company current date day decide decision far favorite favourite find first handle have high
    info information keep kind large last like live long look main month name need new next number old option order own past pattern
    people person pick place plan position prefer reason recent recurring run service set setup share side software sort start state
    status stay style system take time tool try type use usually vendor want work year"""

# Forms that no rule brings together, and a few short forms, each to the stem they share.
_SHARED = """postgr: postgresql pg; javascript: js; typescript: ts; kubernet: k8s; python: py; databas: db; go: went; choos: chose chosen;
    buy: bought; build: built; writ: wrote written; run: ran; meet: met; leav: left; tak: took taken; pai: pay paid; teach: taught;
    fli: fly flew flown flight; eat: ate eaten; driv: drove driven; grow: grew grown; speak: spoke spoken; break: broke broken;
    begin: began begun; find: found; keep: kept; sell: sold; send: sent; sleep: slept; win: won; los: lost; fall: fell; feel: felt;
    child: children kid; wif: wives; mous: mice; birth: born; marr: married wedding; mother: mum mom; father: dad; color: colour;
    favorit: favourite; decid: decision; email: mail; doctor: doc; swim: swam; sing: sang; rid: rode ridden; hold: held; catch: caught;
    death: died dead die; prescrib: prescription; own: owner; approv: approval; arriv: arrival; remov: removal; wear: wore worn;
    invalid: invalidate; renew: renewal;
    feed: fed; lead: led; spend: spent; bring: brought; draw: drew drawn; hear: heard; stand: stood; throw: threw; wak: woke; bicycl: bike;
    grandfath: grandpa grandfather; grandmoth: grandma grandmother"""
ALIASES = {form: shared.strip() for shared, _, forms in (entry.partition(":") for entry in _SHARED.split(";")) for form in forms.split()}

# Cutting by a table and `split` takes a fifth of the time of a regular expression, and it is most of what an answer costs.
_BREAKS = dict.fromkeys(map(ord, '"`,;:!?()[]{}<>/\\|*_-=~@&^%$€£¥“”„«»‹›‘—–…•·¿¡、。！？，：；（）「」『』'), " ")
_LONGEST = 64  # characters of a word; what is longer is not one, and would fill the cache of stems
_CJK = patterns.lazy("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SUFFIXES = ("ization", "isation", "ation", "ement", "ment", "ness", "ance", "ence", "able", "ible", "ical", "ful", "ive", "ic", "ly")


def plain(word: str) -> str:
    """Without punctuation around it, accents and possessive endings."""
    word = word.replace("’", "'").strip(".'")
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return word.removesuffix("'s").removesuffix("s'")


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_tense(word: str) -> str:
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) > 2 and any(c in "aeiouy" for c in base):
            return base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
    return word


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """The part of a lower-case word that its forms share."""
    word = plain(word) or word
    if word in ALIASES or len(word) < 4 or word[0].isdigit():
        return ALIASES.get(word, word)
    word = _singular(word)
    word = _without_tense(ALIASES.get(word, word))
    if word.endswith(_SUFFIXES):
        suffix = next(s for s in _SUFFIXES if word.endswith(s))
        word = word[: -len(suffix)] if len(word) - len(suffix) > 3 else word
    return ALIASES.get(word) or word.rstrip("eyi") or word


def words(text: str) -> list[str]:
    """The lower-case words of a text; scripts without spaces are cut into pairs of characters."""
    found = text.casefold().translate(_BREAKS).split()
    if len(text) > 1000:
        found = [word[:_LONGEST] for word in found]
    if text.isascii() or not _CJK().search(text):
        return found
    return [w for word in found for w in ([word[i : i + 2] for i in range(max(1, len(word) - 1))] if _CJK().match(word) else [word])]


def stems(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem, words(text)))


WEAK = stems(WEAK_WORDS)
EMPTY = stems(" ".join(STOP))
