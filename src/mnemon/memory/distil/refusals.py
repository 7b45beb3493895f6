"""What is said and is no statement of the user's: questions, suppositions, other people's words, wishes, small talk. Each has a rule."""

from __future__ import annotations

import re

from mnemon.memory.distil import patterns

# All patterns are for text in small letters.
AUX = (
    r"(?:do|does|did|is|are|was|were|am|can|could|should|would|will|shall|have|has|had|may|might"
    r"|isn't|aren't|don't|doesn't|didn't|won't|can't|couldn't|shouldn't|wouldn't)"
)
QUESTION = patterns.pattern(
    rf"(?:(?:and|but|so|also|ok(?:ay)?|well|anyway|hey|hi|hello|please|by\s+the\s+way|btw)[,:]?\s+)*(?:(?:what|which|who|whom|whose|when|where|why|how)(?:['’]s|['’]re)?\s+(?:\w+\s+){{0,4}}?{AUX}\b|"
    rf"(?:what|who|where|how)['’](?:s|re)\b|how\s+(?:about|come|long|much|many|often|far)\b|what\s+about\b|{AUX}\s+(?:i|you|we|they|he|she|it|there|this|that|the|my|our|your|a|an|any|some|people|one)\b|any\s+(?:idea|tips?|advice|thoughts|suggestions|reading)\b)",
)
# How whatever `QUESTION` finds begins: most sentences are told by their first letters.
FIRST = patterns.pattern(r"[a-z]+")
OPENS = frozenset(
    "and but so also ok okay well anyway hey hi hello please by btw what which who whom whose when where why how any do does did is are was"
    " were am can could should would will shall have has had may might isn aren don doesn didn won couldn shouldn wouldn".split()
)
ENDS_ASKING = patterns.pattern(r"[?？؟][\"”’)\]\s.!]*$")
HYPOTHETICAL = patterns.pattern(
    r"(?:(?:and|but|so|well|ok(?:ay)?|now)[,:]?\s+)*(?:what\s+if|suppos(?:e|ing)|imagine|assum(?:e|ing)|let['’]?s\s+(?:say|assume|imagine|pretend)|say\s+(?:we|i|you)\b|hypothetically|in\s+theory|theoretically)\b|"
    r"\bi\s+(?:dreamt|dreamed|imagined|fantasi[sz]ed)\b|\bi\s+(?:wonder|was\s+wondering|am\s+wondering)\b|\bi['’]m\s+wondering\b|\bwhat\s+(?:would|if)\b|\bif\s+(?:i|we|he|she|it|they)\s+were\b|\bwould(?:n['’]t)?\s+(?:that|it|this)\s+be\b|"
    r"\b(?:i|we)\s+(?:might|may|could|should)\b|\b(?:i|we)['’]re?\s+(?:thinking\s+(?:of|about)|considering|toying)\b|\b(?:maybe|perhaps|possibly)\b|\bnot\s+sure\b",
)
CONDITIONAL = patterns.pattern(
    r"\bif\b[^.]{3,160}(?:\b(?:would|could|might|should)|\bi['’]d|\bwe['’]d)\b|\b(?:would|could|might)\b[^.]{3,160}\bif\b"
)
WISH = patterns.pattern(
    r"\b(?:i|we)(?:['’]d|\s+would)\s+(?:love|like|really\s+like|really\s+love)\s+to\b|\b(?:i|we)\s+(?:wish|hope|dream)\b|\bi\s+want\s+you\s+to\b|\bone\s+day\s+(?:i|we)\b|\b(?:someday|some\s+day)\b"
)
SPEECH = patterns.pattern(
    r"\b(?:said|says|say|told\s+(?:me|us)|tells\s+(?:me|us)|wrote|writes|asked|asks|replied|answered|quoted?|claims?|claimed|reads|according\s+to|states?|stated|posted|tweeted|goes|texted|mailed|emailed|commented|mentioned|quoting)\b[^\"“„«]{0,40}[:,]?\s*[\"“„«]",
)
SPOKE = patterns.pattern(
    r"(?!(?:i|we)\b)[^,:;.]{2,60}\b(?:said|says|told\s+(?:me|us)|wrote|writes|claims|claimed|believes|reckons|thinks|insists|suggested|suggests|announced|mentioned)\b\s*(?:(?:[:,]|that\b)\s*\S|(?:he|she|they|it|the|his|her|you|there)\b)"
)
HEARSAY = patterns.pattern(
    r"(?:(?:most|many|some)\s+)?\w+s\s+(?:recommend|advise|believe|reckon|warn|agree)\b|(?:according\s+to|rumou?r\s+has\s+it|apparently|supposedly|allegedly|(?:i|we)\s+(?:heard|read|was\s+told|were\s+told)\b|(?:people|they|some)\s+say\b|word\s+is)\b"
)
NO_SAY = patterns.pattern(r"(?:as\s+)?(?:i|we)(?:['’]ve)?\s+(?:already\s+)?(?:said|told|mentioned|wrote)\b")
LONG_QUOTE = patterns.pattern(r"[\"“„«](?:[^\"”“»\s]+\s+){4,}[^\"”“»]*[\"”“»]")
VOICED = patterns.pattern(  # somebody speaks between the marks, if it is not a title
    r"(?<!\bis\s)(?<!called\s)(?<!named\s)(?<!titled\s)[\"“„«][^\"”“»]*\b(?:i['’]m|(?:i|we)\s+[a-z]+|(?:my|our)\s+[\w\s-]{2,30}?\s(?:is|are|was|were))\b[^\"”“»]*[\"”“»]"
)
FICTION = patterns.pattern(
    r"(?:[^,]{0,20}\s)?in\s+(?:the|this|that|a)\s+(?:\w+\s+)?(?:game|novel|film|movie|book|story|series|play|dream|episode|scene|comic|musical|opera|sitcom)"
    r"(?=,|\s+(?:i|i['’]m|the|he|she|they|there|we|my|a|an|it|that|which|by|about)\b)"
)
FICTIONS = frozenset("game novel film movie book story series play dream episode scene comic musical opera sitcom".split())
SHELL = patterns.pattern(r"^[\"“„«].*[\"”“»][.!,]?$", re.DOTALL)

GREETING = patterns.pattern(
    r"(?:hi|hello|hey|hiya|yo|good\s+(?:morning|afternoon|evening|night|day)|morning|evening|bye|goodbye|see\s+(?:you|ya)|talk\s+(?:soon|later)|cheers|thanks?(?:\s+you)?|thx|ty|many\s+thanks|much\s+appreciated|"
    r"you['’]?re\s+(?:welcome|a\s+\w+|right|great|awesome|the\s+best|too\s+kind)|you\s+saved|welcome\s+back|back\s+again|i['’]m\s+back|ok(?:ay)?|k|yes|yep|yeah|yup|no(?=\s*[,.!]|$)|nope|nah|sure|right|alright|fine|great|nice|cool|perfect|awesome|"
    r"excellent|brilliant|lovely|wonderful|amazing|sweet|super|wow|whoa|haha\w*|lol|lmao|rofl|hehe|hm+|mm+|um+|uh+|oh|ah|aha|ugh|phew|oops|ouch|yay|hooray|sorry|apologies|pardon|excuse\s+me|never\s*mind|no\s+(?:problem|worries|rush)|"
    r"got\s+it|i\s+see|understood|makes\s+sense|that\s+makes\s+sense|fair\s+enough|good\s+(?:point|one|idea|to\s+know|luck|job)|well\s+done|sounds\s+good|looks\s+good|same\s+here|me\s+too|exactly|indeed|of\s+course|absolutely|"
    r"definitely|totally|agreed|deal|done|interesting|happy\s+\w+|congrat\w*|brb|afk|gtg|omg|let['’]s\s+(?:go|continue|see|start|move|get|look|talk|do|try|begin|leave|keep|pick|take\s+a)|let\s+me\s+(?:see|think|check|get|know|try)|"
    r"give\s+me\s+a\s+(?:second|sec|moment|minute)|one\s+(?:second|sec|moment|minute)|hold\s+on|wait|just\s+a\s+(?:second|sec|moment)|where\s+were\s+we|moving\s+on|anyway|test|testing|i['’]ll\s+(?:be|try|check|let|get|see|think|do|have\s+a\s+look|come)\b|"
    r"that['’]?s\s+(?:all|it|great|fine|nice|good|cool|right|true|perfect|enough|helpful|a\s+\w+|so\s+\w+|very\s+\w+|what)|that\s+(?:joke|was|helped|worked|helps|works|makes|sounds|looks|smells)|it\s+(?:worked|works|helped|depends|helps)|this\s+(?:is|was)\s+(?:great|fun|nice|helpful)|what\s+a\b)"
    r"(?![\w'’-])",
)
PASSING = patterns.pattern(
    r"(?:it['’]?s|it\s+(?:is|was)|the\s+(?:weather|traffic|sun|rain|wifi|internet|coffee|news)|i\s+(?:need|could\s+use)\s+(?:a|some|more|to)|i['’]m\s+(?:back|here|off|tired|hungry|bored|fine|good|ok(?:ay)?|done(?!\s+with)|ready|confused|stuck|lost|sorry|glad|happy|afraid(?!\s+of)|sure|not\s+sure|so\s+\w+|just|still\s+here)|"
    r"i\s+(?:think|guess|know|see|agree|understand|didn['’]t\s+know|don['’]t\s+(?:know|think|get|understand)|feel|hope|wish|like\s+(?:that|it|this)|love\s+(?:that|it|this)|found\s+it|got\s+it)|"
    r"(?:we|i)\s+(?:talk|spoke|chat)|there\s+(?:is|was)\s+(?:a\s+)?(?:lot|something)|rain\w*\b|snow\w*\b)",
)


SUPPOSING = frozenset(
    "what suppose supposing imagine assume assuming let's lets let say hypothetically theory theoretically dreamt dreamed imagined"
    " fantasised fantasized wonder wondering if"
    " would wouldn't might may could should thinking considering"
    " toying maybe perhaps possibly sure".split()
)
WISHING = frozenset("love like wish hope dream want someday day".split())
SPEAKING = frozenset(
    "said says say told tells wrote writes asked asks replied answered quote quoted claim claims claimed reads according states"
    " stated posted tweeted goes texted mailed emailed commented"
    " mentioned quoting recommend advise believe reckon warn agree believes reckons thinks insists suggested suggests announced"
    " rumor rumour apparently supposedly allegedly"
    " heard read word".split()
)
QUOTES = frozenset('"“„«')


TOLD_AND_ASKED = patterns.pattern(
    rf"(?P<told>(?:i|we|my|our|i['’](?:m|ve|ll)|we['’](?:re|ve|ll))\b.{{10,}}?),\s+(?:and\s+|so\s+|but\s+)?(?:(?:what|which|who|when|where|why|how)\b|{AUX}\s+(?:i|you|we|it|that|this|there|my|our|the)\b)",
    re.DOTALL,
)


def told_before_asking(low: str) -> int:
    """Where the question begins in a sentence that first tells something of the speaker's: "I use Flask 2.3, how do I test it?"; else 0."""
    found = TOLD_AND_ASKED.match(low)
    return found.end("told") if found else 0


def rule_for(low: str, body: str, lows: frozenset[str]) -> str:
    """The rule by which a sentence is no statement, judged by its form alone; empty if it may be one.

    `low` is the sentence in small letters, `body` it without its lead-in, `lows` its words.
    """
    if ENDS_ASKING.search(low) or asks(low) or (len(body) != len(low) and asks(body)):
        return "question"
    if quoted := _quotes(body, lows):
        return quoted
    if lows & FICTIONS and FICTION.match(body):
        return "fiction"
    if lows & SUPPOSING and (HYPOTHETICAL.search(body) or CONDITIONAL.search(body)):
        return "hypothetical"
    return "wish" if lows & WISHING and WISH.search(body) else ""


def asks(low: str) -> bool:
    first = FIRST.match(low)
    return first is not None and first.group() in OPENS and QUESTION.match(low) is not None


def _quotes(text: str, lows: frozenset[str]) -> str:
    """`quotation` or `hearsay` if others speak here, else nothing."""
    marked = not QUOTES.isdisjoint(text)
    speaking = bool(lows & SPEAKING)
    if not (marked or speaking) or NO_SAY.match(text):
        return ""
    if marked and ((speaking and SPEECH.search(text)) or SHELL.match(text) or LONG_QUOTE.search(text) or VOICED.search(text)):
        return "quotation"
    if not speaking:
        return ""
    if spoke := SPOKE.match(text):
        return "quotation" if ":" in spoke.group() else "hearsay"
    return "hearsay" if HEARSAY.match(text) else ""
