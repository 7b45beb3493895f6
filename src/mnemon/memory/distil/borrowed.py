"""Stretches of a message in which the user does not speak: texts to be worked on, letters, stories and role play. Pure.

A message that borrows a voice says so in a few words, at its beginning or its end; where none of them stands nothing is searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mnemon.memory.distil import patterns

HEAD, TAIL = 2000, 400  # characters in which a message says what its text is

TEXT = (
    r"(?:text|sentences?|paragraphs?|e-?mails?|mails?|letter|message|essay|stor(?:y|ies)|article|post|bio|biography|cv|r[eé]sum[eé]|speech|poem|lyrics"
    r"|transcript|passage|draft|caption|abstract|tweet|report|chapter|script|statement|paper|review|application|summary|notes|minutes|page|ad|advert)"
)
LANGUAGE_WORK = (
    r"(?:proof-?read|translate|summari[sz]e|sum\s+up|rewrite|reword|rephrase"
    r"|paraphrase|correct|edit|polish|shorten|simplify|spell-?check|condense)"
)
OTHER_WORK = (
    r"(?:improve|complete|continue|finish|fix|format|review|check|convert|analy[sz]e|transcribe|grade|critique|turn|read|reply\s+to|answer|respond\s+to"
    r"|look\s+over|go\s+over|comment\s+on|feedback\s+on|extract|classify|parse|repeat|type)"
)
BEGINS = r"(?:^|(?<=[.!?\n]\s)|(?<=[.!?\n])|\b(?:please|pls|you|me|to|and|kindly|just|then|now)\s+)"
# The colon behind an order begins what the order is about: "translate into French: my name is Ada".
ORDERED = patterns.pattern(
    rf"{BEGINS}(?:(?:{LANGUAGE_WORK}\s+[^.!?\n:]{{1,90}}|{LANGUAGE_WORK}(?=\s*:\s*\n)|{OTHER_WORK}\s+(?:\S+\s+){{0,5}}?{TEXT}\b[^.!?\n:]{{0,60}}):\s+(?=\S)"
    rf"|(?:{LANGUAGE_WORK}|{OTHER_WORK})\s+(?:this|the\s+following|(?:\S+\s+){{0,3}}?{TEXT})\b[^.!?\n:]{{0,60}}[.!?]?\s*\n\s*(?=\S)|{LANGUAGE_WORK}\s+(?:my|this|the\s+following)\s+(?:\S+\s+){{0,2}}?{TEXT}[.!?]\s+(?=\S))"
)
SHOWN = patterns.pattern(
    rf"(?:^|[.!?\n]\s*)(?:here(?:['’]s|\s+is|\s+are|\s+comes)|below\s+is|this\s+is|consider|take)\s+[^.!?\n:]{{0,60}}\b(?:{TEXT}|example|sample|template)\b"
    rf"[^!?\n:]{{0,80}}(?::\s*\n\s*|:\s+(?=[\"“„«']))(?=\S)"
)
ABOVE = patterns.pattern(
    rf"\n\s*(?:(?:please|can\s+you|could\s+you|would\s+you|kindly)\s+)*{LANGUAGE_WORK}\s+"
    rf"(?:this|that|it|(?:the|my)\s+(?:above|{TEXT}))\b[^\n]{{0,120}}$"
)
SALUTATION = patterns.pattern(
    r"(?m)^[ \t>]*(?:[Dd]ear[ \t]+"
    r"(?=(?!Assistant|Bot|AI\b|Diary|Mnemon|ChatGPT|Computer)[A-Z]|sir|madam|all\b|team|friend|colleague|customer|hiring)"
    r"|[Tt]o whom it may concern|(?:Hi|Hello|Hey)[ \t]+(?:all|team|everyone|everybody|both|folks|there)[ \t]*,[ \t]*$"
    r"|(?:Sehr geehrte|Liebe|Lieber|Cher|Chère|Estimad[oa]|Querid[oa])[ \t]+[A-Z])"
)
CLOSING = patterns.pattern(
    r"(?mi)^[ \t>]*(?:yours(?:[ \t]+\w+)?|(?:kind|best|warm|kindest|warmest)[ \t]+(?:regards|wishes)"
    r"|regards|sincerely|cheers|best|love|many thanks|thank you|thanks"
    r"|mit freundlichen grüßen|cordialement|saludos)[,.!]?[ \t]*\n[^\n]{0,60}"
)
STORY = (
    r"(?:story|tale|novel|scene|screenplay|script|sketch|play|fan\s?fiction"
    r"|adventure|fable|monologue|dialogue|sitcom|rap|limerick|poem|song|diary\s+entry)"
)
FICTION = patterns.pattern(
    rf"\b(?:write|tell|compose|make\s+up|continue|start|invent|draft|give|create|improvise)\b[^.!?\n]{{0,40}}\b{STORY}\b[^.!?\n]{{0,60}}?"
    r"\b(?:where|in\s+which|with\s+me\s+as|starring|set\s+in|about\s+(?:an?|the|two|three|some\w*)|told\s+by|from\s+the\s+(?:point|view|perspective))\b"
    r"|\b(?:let['’]?s|let\s+us|can\s+we|could\s+we|shall\s+we"
    r"|start|begin|time\s+for|in\s+this|in\s+our|for\s+this)\s+(?:\S+\s+){0,3}?role[- ]?play"
    r"|\b(?:play|do|run|start)\s+(?:an?|the|our)\s+(?:\w+\s+)?(?:game|scene|scenario|adventure)\s+(?:where|in\s+which)\b"
    r"|^role[- ]?play\b|\bpretend\s+(?:that\b|to\s+be\b|you\b|you['’]re|i\b|i['’]m|we\b|we['’]re)"
    r"|\byou(?:['’]re|\s+(?:are|be|play|will\s+be))\s+[^.!?\n]{2,60}?\band\s+(?:i\s+(?:am|play|will\s+be)|i['’](?:m|ll\s+be))\b",
)
# A story or a play has one of these in it: looking for them is much quicker than for the pattern.
PLAYS = ("pretend", "role", "you're", "you’re", "you are", "you be", "you will be", "play")
STORIES = tuple("story tale novel scene script sketch fiction adventure fable logue sitcom rap limerick poem song".split())
STORIES += ("diary entry",)
MAKES = tuple("write tell compose make continue start invent draft give create improvise".split())

# With one of these begins whatever `ORDERED` finds.
WORK = frozenset(
    "proof proofread translate summarise summarize sum rewrite reword rephrase paraphrase correct edit polish shorten"
    " simplify spell spellcheck condense improve complete continue finish fix format review check convert analyse analyze"
    " transcribe grade critique turn read reply answer respond look go comment feedback extract classify parse repeat type".split()
)
OF_LANGUAGE = tuple("proof translat summar rewrit reword rephras paraphras correct edit polish shorten simplif spell condens".split())
LETTERS = patterns.pattern(r"[a-z]+")

QUOTED = patterns.pattern(r"[\"“„«](?P<inner>[^\"”“»\n]+)[\"”“»]")


def stretches(text: str) -> list[tuple[int, int, str]]:
    """(start, end, rule) of what the message borrows, in order and without overlap; most messages borrow nothing."""
    low = text.lower()
    if len(low) != len(text):
        low = text
    found: list[tuple[int, int, str]] = []
    lines = "\n" in text
    head = low[:HEAD]
    if lines or ":" in text or any(work in head for work in OF_LANGUAGE):
        found += _worked_on(text, low)
    if (lines or low.startswith("dear")) and (letter := SALUTATION.search(text, 0, HEAD)):
        closing = CLOSING.search(text, letter.end())
        found.append((letter.start(), closing.end() if closing else len(text), "letter"))
    if plays(head) and (fiction := FICTION.search(head)):
        found.append((fiction.start(), len(text), "fiction"))
    return _apart(found) if found else found


def plays(head: str) -> bool:
    """Whether there may be a play or a story in it, which somebody is to make."""
    return any(hint in head for hint in PLAYS) or (any(hint in head for hint in STORIES) and any(hint in head for hint in MAKES))


def _worked_on(text: str, low: str) -> Iterator[tuple[int, int, str]]:
    ordered = None if WORK.isdisjoint(LETTERS.findall(low, 0, HEAD)) else ORDERED.search(low, 0, HEAD)
    ordered = ordered or SHOWN.search(low, 0, HEAD)
    if ordered:
        quoted = QUOTED.match(text, ordered.end())
        yield ordered.end(), quoted.end() if quoted else len(text), "worked_on"
    start = max(0, len(text) - TAIL)
    above = ABOVE.search(low, start) or (ABOVE.search(low) if start == 0 else None)
    if above and text[: above.start()].strip():
        yield 0, above.start(), "worked_on"


def _apart(found: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """The same without overlap: what begins first says what it is."""
    kept: list[tuple[int, int, str]] = []
    for start, end, rule in sorted(found):
        begin = max(start, kept[-1][1]) if kept else start
        if begin < end:
            kept.append((begin, end, rule))
    return kept


def set_aside(lines: Iterator[tuple[int, int, str]], borrowed: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """The lines of a message, cut where something borrowed begins or ends; a reminder in a long text stays what it is."""
    for start, end, kind in lines:
        at = start
        for begins, ends, rule in borrowed:
            first, last = max(at, begins), min(end, ends)
            if first >= last:
                continue
            if at < first:
                yield at, first, kind
            yield first, last, (kind if kind == "note" and rule != "letter" and at == first else rule)
            at = last
        if at < end:
            yield at, end, kind
