"""How a sentence speaks of what was said before: it corrects, reverses, updates, adds or takes back, and of what.

All patterns are for text in small letters: looking for either case is three times as slow.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from mnemon.memory.distil import patterns, retractions
from mnemon.memory.statements import Cue


def _any(*wordings: str) -> re.Pattern[str]:
    """Any of these, where a word begins: said once, since then a look at the next letter rules out most of them."""
    return patterns.pattern(rf"\b(?:{'|'.join(wordings)})")


SIGH = r"(?:(?:sorry|oh|oops|hm+|ok(?:ay)?|actually|wait|no|well|please)[,.!]?\s+)*"

OLD = r"[\"“']?(?P<old>[^\s,;:.!?\"”]+(?:[.:,/-]\w+)*(?:\s+[^\s,;:.!?\"”]+){0,3}?)[\"”']?"
# What one had or did is over: the car was sold, the habit is given up. What is over stands behind.
ENDS = (
    r"(?:(?:abandoned|ditched|got\s+rid\s+of|given\s+up(?:\s+on)?|gave\s+up(?:\s+on)?|dropped|sold|quit|moved\s+on\s+from|got\s+out\s+of)\s+(?!to\b|by\b|off\b|out\b|in\b|at\b|from\b)"
    r"|(?:quit|stopped|gave\s+up|given\s+up)\s+(?=\w+ing\b))"
)
ENDED = patterns.pattern(
    rf"\b{ENDS}(?:the\s+|a\s+|an\s+|my\s+|our\s+|using\s+|taking\s+|playing\s+|eating\s+|drinking\s+|driving\s+)?"
    + OLD
    + r"(?=\s*(?:[,;.!?)]|(?:with|by|for|as|in|on|at|to|from"
    r"|and|because|since|due|after|when|last|this|these|any\s?more|ago|two|three|some)\b|$))"
)
OLD_VALUE = (
    patterns.pattern(
        r"\b(?:instead\s+of|rather\s+than|in\s+place\s+of|replac(?:es|ed|ing)(?!\s+(?:by|with)\b)|no\s+longer|used\s+to\s+be|previously|formerly)\s+"
        r"(?:the\s+|a\s+|an\s+|my\s+|our\s+)?" + OLD + r"(?=\s*(?:[,;.!?)]|with\b|by\b|for\b|as\b|in\b|on\b|$))"
    ),
    ENDED,
    patterns.pattern(
        r"(?:^|,\s*|\s+and\s+|\s+)not\s+(?:in\s+|on\s+|at\s+|the\s+|for\s+)*" + OLD + r"(?=\s*(?:[,;.!?)]|for\b|as\b|in\b|$))"
    ),
    patterns.pattern(
        r"^" + SIGH + r"(?:forget|scrap|ditch|drop|never\s+mind|scratch|so\s+much\s+for|kill)\s+(?:about\s+)?(?:the|our|my)\s+"
        r"(?P<old>[^,;:.!]+?)(?:\s+(?:idea|plan|thing))?\s*(?=[,;:.!]|$)"
    ),
)
OLD_HINTS = frozenset(
    "not instead rather place replaces replaced replacing longer used previously formerly forget scrap ditch drop mind scratch"
    " much kill abandoned ditched got rid given gave dropped sold quit stopped moved".split()
)

CORRECTION = _any(
    r"correction\b|typo\b|^oops\b|what\s+i\s+meant\b|i\s+was\s+mistaken\b|^(?:it|that)(?:['’]s|\s+is|\s+was)\s+[^,]{1,40},\s*not\s+\S|^(?:scratch|strike)\s+that\s*[,:]|^(?:no,\s+|sorry,\s+)?make\s+that\b|my\s+(?:mistake|bad)\b[:,]",
    r"i\s+(?:meant|mixed|confused|was\s+wrong|mis(?:read|spoke|typed|counted|heard|took|remembered|stated|spelt|spelled|said|wrote))\b",
    r"i\s+(?:got\s+(?:that|it|this|them|the\s+\w+)\s+wrong|(?:wrote|gave\s+you)\s+the\s+wrong)\b",
    r"wrong\s+(?:number|date|name|one|day|way\s+round)\b\s*[:,]|should\s+(?:read|have\s+(?:said|been))\b",
    r"^(?:wait|actually)[,:]\s+(?:the|my|our|it|it['’]s)\b(?!\s+other)",
    r"^(?:no|sorry|wait|oops|actually|err?)\b[,:]?\s[^.!?]*(?:,|\band)\s+not\s+\S|^(?:(?:no|sorry|wait|oops)[,:]?\s+)?not\s[^,]{1,30},\s",
)
REVERSAL = _any(
    r"after\s+all\b(?!\s+(?:the|these|those|this|my|our|his|her|their)\b)|on\s+second\s+thoughts?\b|thought\s+better\b|rethought\b|decided\s+against\b|pulled\s+out\b|fell\s+through\b|ended\s+up\b|reconsidered\b|shelved\b",
    r"(?:is|are)\s+off\b(?!\s+(?:to|the|with)\b)|instead\b(?!\s+of\s+\w+ing\b)|so\s+much\s+for\b|flipped\b|u-turn\b|backtrack\w*",
    r"changed\s+(?:course|(?:my|our)\s+minds?|tack|direction)\b|change\s+of\s+(?:plans?|heart|mind|course)\b",
    r"scrap(?:ped)?\s+(?:that|the|it|our|my)\b|gave\s+in\b|caved(?:\s+in)?\b|overrul\w+|backed\s+out\b|withdr[ae]wn?\b",
    r"no\s+longer\b|any\s?more\b|revert(?:ed|ing|s)?\b|(?:went|going|gone|came|go|are)\s+back\s+to\b|again[.!]?$",
    r"in\s+the\s+end\b|(?:i['’]m|i\s+am|we['’]re|we\s+are)\s+back\s+(?:in|on|to|at|with)\b|c(?:a|o)me\s+out\s+of\s+retirement\b",
    ENDS,
    r"(?:merged|brought|folded|consolidated|moved|moving|switched|switching)\b[^.;]{0,50}?\bback\b",
    r"cancel(?:led|ed|s|ling)?\b|call(?:ed|ing)\s+(?:it\s+)?off\b|(?:ditched|abandoned|dropped)\s+(?:the|our|my)\b",
    r"^" + SIGH + r"(?:forget|ditch|drop|scratch|abandon)\s+(?:about\s+)?(?:the|that|our|my)\b[^,;:.]{2,60}[,;:]",
)
# Words by which a position is turned round, whatever it was; they need not name it again.
TURNED = _any(
    r"after\s+all\b(?!\s+(?:the|these|those|this|my|our|his|her|their)\b)|on\s+second\s+thoughts?\b|thought\s+better\b|rethought\b|reconsidered\b|in\s+the\s+end\b|ended\s+up\b|instead\b(?!\s+of\s+\w+ing\b)",
    r"change\s+of\s+(?:plans?|heart|mind|course)\b|changed\s+(?:course|(?:my|our)\s+minds?|tack|direction)\b|decided\s+against\b|u-turn\b|flipped\b",
    r"gave\s+in\b|caved\b|overrul|backed\s+out\b|pulled\s+out\b|fell\s+through\b|so\s+much\s+for\b|scrap\b|(?:is|are)\s+off\b|cancelled\b|called\s+off\b",
    r"again[.!]?$|back\s+(?:in|on|to)\b|out\s+of\s+retirement\b",
)
ADDITION = _any(
    r"also\b|as\s+well\b(?!\s+as)|too(?:[.!]?$|,|\s+and\b)|another\b|other\s+\w+\b|in\s+addition\b|besides\b|additional\b|one\s+more\b",
)
CHANGED = (
    r"(?:bumped|upgraded|downgraded|migrated|relocated|renamed|rescheduled|postponed|switched|moved|raised|lowered|increased|reduced|changed"
    r"|transferred|adjourned|deferred|rebooked|reassigned|redirected|adjusted|amended|converted|extended|shortened|replaced|handed|brought\s+forward|pushed\s+back)"
)
UPDATE = _any(
    r"these\s+days\b|nowadays\b|since\s+then\b|from\s+(?:today|now|this|next|tomorrow|\w+\s+on\b|\w+day)",
    r"as\s+of\s+(?:today|now|this|next|last|\d|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)\w*)",
    r"(?:is|are|am|'s|'re|has|have|was|were)\s+now\b|now\s+(?:is|are|has|lives?|works?|runs?|uses?|goes|costs?|takes?|starts?|ends?)\b|now[.!]?$",
    rf"(?:was|were|been|got|being)\s+{CHANGED}\b|{CHANGED}\b[^.;]{{0,60}}?\bto\b|(?:replaced|swapped|reached)\b|relocated\b|ha(?:s|ve)\s+moved\b|(?:was|been)\s+set\s+to\b",
    r"(?:is|are|am|['’]m|['’]re)\s+(?:down|up)\s+to\b|slipped\s+to\b|(?:pushed|put)\s+back\s+to\b|(?:rose|fell|dropped|grew|climbed|jumped|went\s+(?:up|down))\s+to\b",
    r"(?:is|are|am|'re|'m)\s+(?:moving|switching|migrating|changing|relocating)\b|changed\s+hands\b|(?:became|becomes|ha(?:s|ve)\s+become)\b",
    r"hand(?:s|ed|ing)?\b[^.;]{0,40}?\b(?:over|to)\b|(?:took|taken|takes|taking)\s+over\b|started\s+(?:a\s+|my\s+)?new\b|left\s+and\b",
    r"^(?:my|our|the)\s+new\b",
)
# A pattern is tried only where one of its words stands: most sentences have none of them.
CUES: tuple[tuple[Cue, re.Pattern[str], frozenset[str]], ...] = (
    (
        "correction",
        CORRECTION,
        frozenset(
            "correction typo oops scratch strike make mistake bad meant mixed confused wrong read said been not wait actually"
            " misread misspoke mistyped"
            " miscounted misheard mistook misremembered mistaken misstated misspelt misspelled missaid miswrote".split()
        ),
    ),
    (
        "reversal",
        REVERSAL,
        frozenset(
            "after second thought thoughts rethought decided pulled fell ended reconsidered shelved off instead so flipped u-turn"
            " backtracked backtracking"
            " course mind minds"
            " tack direction change scrap scrapped gave caved overrule overruled overrules backed withdrawn withdrew longer"
            " anymore any revert"
            " reverted reverts reverting back again cancel cancelled canceled cancels cancelling ditched abandoned dropped forget"
            " ditch drop scratch abandon end i'm am we're are come came got given sold quit stopped moved".split()
        ),
    ),
    ("addition", ADDITION, frozenset("also well too another other addition besides additional more".split())),
    (
        "update",
        UPDATE,
        frozenset(
            "these nowadays since from as now bumped upgraded downgraded migrated relocated renamed rescheduled postponed"
            " switched moved raised"
            " lowered increased reduced changed transferred converted extended shortened replaced handed set brought pushed swapped"
            " reached down up"
            " adjourned deferred rebooked reassigned redirected adjusted amended slipped put rose fell dropped grew climbed jumped"
            " went moving switching migrating changing relocating became"
            " becomes become hand"
            " hands handing took taken takes taking started left new".split()
        ),
    ),
)


class Found(NamedTuple):
    """A cue, and what it is about, as said; `clause` if that is told as a statement: "forget that I smoke"."""

    cue: Cue = "none"
    about: str = ""
    clause: bool = False


NOTHING = Found()


def cue_of(text: str, low: str, lows: frozenset[str]) -> Found:
    """The strongest cue of a sentence; `low` is it in small letters, `lows` are its words so."""
    if lows & retractions.HINTS and (wish := retractions.find(text, low)):
        return Found("retraction", wish.about, wish.clause)
    old = _old(text, low) if lows & OLD_HINTS else ""
    for name, pattern, hints in CUES:
        if lows & hints and pattern.search(low):
            return Found(name, old if name != "addition" else "")
    return NOTHING


def _old(text: str, low: str) -> str:
    for pattern in OLD_VALUE:
        found = pattern.search(low)
        if found:
            return text[slice(*found.span("old"))].strip(" '\"“”")
    return ""
