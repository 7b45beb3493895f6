"""Who "I" and "you" are: what the user said, put the way one says it back to them.

English only. Text in, text out: it knows nothing of chats or of who is speaking.
"""

from __future__ import annotations

import re

from mnemon.model.builtin import patterns

_QUOTED = patterns.lazy(r"(\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`|https?://\S+)")
_OWN = patterns.lazy(
    r"(?<![\w@./\\#$&'’+-])(?:(?P<am>[Aa]m )?(?P<i>I|i(?=['’ ]\w))|(?P<word>[Mm]y|MY|[Mm]e|[Mm]ine|[Mm]yself|[Ww]e|WE|[Oo]ur|OUR|[Uu]s"
    r"|[Oo]urs|[Oo]urselves|[Yy]ou|[Yy]our|[Yy]ours|[Yy]ourself))(?P<short>['’](?:m|ve|ll|d|re)\b)?"
    r"(?P<be>(?: (?:also|really|currently|actually|still|now|never|always|just|only|already))? (?:am|was|are|were)\b)?"
    r"(?![\w@/\\+-]|\.\w|['’]\w|\(\))"
)
_FLIPPED = {
    "my": "your", "me": "you", "mine": "yours", "myself": "yourself", "we": "you", "our": "your", "us": "you", "ours": "yours",
    "ourselves": "yourselves", "your": "my", "yours": "mine", "yourself": "myself",
}  # fmt: skip
_NUMBERED = patterns.lazy(
    r"\b(?:war|part|phase|chapter|type|class|volume|act|section|level|stage|tier|book|grade|for|index|variable) $", re.IGNORECASE
)
_BEFORE_SUBJECT = patterns.lazy(
    r"(?:^|[,;:(.!?]|\b(?:and|that|if|when|because|but|so|as|what|how|where|than|hope|think|know|said))\s*$", re.IGNORECASE
)
_AFTER_SUBJECT = patterns.lazy(r" (?:can|could|will|would|should|have|had|do|did|may|might|must|need|know|said|told)\b")
_ADDRESSES = patterns.lazy(
    r"\b(?:I|me|my|mine|myself)\b|\bi['’ ]\w|^(?:please )?(?:your\b|you(?: are|['’]re| should| must)\b)", re.IGNORECASE
)


def exchanged(text: str) -> str:
    """A user's statement as one says it back: "I'm building" becomes "You're building"; quotations and names stay."""
    addresses = bool(_ADDRESSES().search(text))

    def turned(match: re.Match[str]) -> str:
        return _turned(match, addresses=addresses)

    parts = _QUOTED().split(text)
    return "".join(part if i % 2 else _OWN().sub(turned, part) for i, part in enumerate(parts))


def _turned(match: re.Match[str], *, addresses: bool) -> str:
    """One pronoun, with the verb that hangs on it, seen from the other side."""
    word, before = match["i"] or match["word"], match.string[: match.start()]
    first = not before.strip("([\"'“‘ ") or before.rstrip("([\"'“‘ ").endswith((".", "!", "?", "\n"))
    if match["i"]:
        return match.group() if _NUMBERED().search(before) else _turned_i(match, first=first)
    if word.istitle() and not first and not before.rstrip().endswith((":", ",", "-", "–", "—")):
        return match.group()  # "The Last of Us", "My Little Pony": a name
    key = word.lower()
    if key == "mine" and not re.search(r"\b(?:of|is|are|was|were|like|than|not) $", before):
        return match.group()  # a coal mine
    if key == "you":
        return _turned_you(match, first=first) if addresses else match.group()
    if key.startswith("you") and not addresses:
        return match.group()
    return _cased(_FLIPPED[key], word) + (match["short"] or "") + (match["be"] or "")


def _cased(new: str, old: str) -> str:
    return new.upper() if old.isupper() else new.capitalize() if old.istitle() else new


def _turned_i(match: re.Match[str], *, first: bool) -> str:
    short = (match["short"] or "").replace("m", "re")
    if match["am"]:
        return ("Are" if match["am"][0] == "A" else "are") + " you" + short
    be = re.sub(r"was$", "were", re.sub(r"am$", "are", match["be"] or ""))
    return ("You" if first else "you") + short + be


def _turned_you(match: re.Match[str], *, first: bool) -> str:
    if match["short"]:
        return "I" + match["short"].replace("re", "m")
    subject = (
        first
        or match["be"]
        or _BEFORE_SUBJECT().search(match.string[: match.start()])
        or _AFTER_SUBJECT().match(match.string[match.end() :])
    )
    be = re.sub(r"were$", "was", re.sub(r"are$", "am", match["be"] or ""))
    return ("I" if subject else "me") + be
