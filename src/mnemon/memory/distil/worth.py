"""Is a sentence worth keeping, and as what? Small talk has no name, number, relation, deed, taste, standing wish or change in it."""

from __future__ import annotations

from mnemon.memory import words
from mnemon.memory.distil import lexicon, patterns, phrases, refusals, slots
from mnemon.memory.distil.clauses import Clause
from mnemon.memory.distil.readings import Reading
from mnemon.memory.statements import Kind

STANDING = patterns.pattern(
    r"\b(?:always|never|ever|every|each|from\s+now\s+on|from\s+today|in\s+(?:the\s+)?future|only|any\s?more|whenever|by\s+default|at\s+all\s+times)\b"
)
FOR_GOOD = patterns.pattern(  # makes an order to the assistant a standing one; "only" and "every" may stand in the task itself
    r"\b(?:always|never|ever|from\s+now\s+on|from\s+today|in\s+(?:the\s+)?future|any\s?more|whenever|by\s+default|at\s+all\s+times|(?:every|each)\s+time)\b"
)
COMMITTED = patterns.pattern(
    r"\b(?:decided?|agreed|chose|chosen|settled|committed|opted|resolved|signed|approved|(?:we|i)(?:['’](?:ll|d|m|re)|\s+(?:will|would|am|are))\s+never|out\s+of\s+the\s+question|for\s+good[.!]?$|through\s+with\b|done\s+with\s+(?!(?:the|my|our|this|that|these|it|all|you)\b)|(?:gone|went|going)\s+with|stay(?:s|ing)?\s+(?:on|as|with|put)"
    r"|stick(?:ing)?\s+with|no\s+discussion|decision)\b|\bstays?[.!]?$",
)
COMMITTING = frozenset(
    "decide decided agreed chose chosen settled committed opted resolved signed approved never gone went going stay stays"
    " staying stick sticking discussion decision done through question good".split()
)
PLANNED = patterns.pattern(r"\b(?:will|going\s+to|plan(?:s|ning)?\s+to|booked|about\s+to|scheduled)\b|['’]ll\b")
TASTE = patterns.pattern(r"\b(?:favou?rite|rather\s+\w+\s+[\w\s]{1,30}than|can(?:['’]t|not)\s+stand|prefer|not\s+for\s+(?:me|us))\b")
TASTES = frozenset("favourite favorite rather stand prefer not".split())
NOT = patterns.pattern(r"\b(?:not|never|no)\b|n['’]t\b")
NO_MORE = patterns.pattern(r"\b(?:can(?:['’]t|not)\s+stand|no\s+longer|nothing\s+of|no\s+(?:plans?|more|upgrade|\w+\s+for\s+(?:me|us)))\b")
POLICY = patterns.pattern(  # a position, also without a verb: no shoes indoors, never again a caravan, all our tools hang there
    r"(?:never\s+again|no\s+more|all\s+(?:of\s+)?(?:my|our))\s+\S|no\s+(?!(?:idea|problem|worr|rush|wonder|need|reason|hurry|time|luck|change|way|chance|one|doubt|thanks|matter|news)\w*\b)"
    r"[\w-]+(?:\s+\w+)?\s+(?:here\b|ever\b|please\b|(?:for|in|at|on|to|with|from)\s+(?:me|us|my|our|this|the|home)\b|before\b|after\b)"
)
AIMLESS = patterns.pattern(
    r"(?:while|before|when)\s[^,:]*[.!]?$|quick\s+(?:one|question)\b|(?:one|two|three|a\s+few)\s+(?:more\s+)?things?\b"
)
RELATION = patterns.pattern(r"\b(?:my|our)\s+(?:(?:other|new|old|own|little|big|youngest|eldest)\s+)?(\w+)")
LASTING = frozenset(
    "allergic intolerant married engaged divorced widowed responsible based born vegetarian vegan diabetic pregnant retired"
    " related afraid addicted fluent"
    " interested committed employed enrolled registered insured scared terrified obsessed good bad opposed used".split()
)
WHO = patterns.pattern(  # what somebody is by trade or in life: I'm a baker, a widow, a family of five
    r"\b(?:i|we)(?:['’](?:m|re)|\s+(?:am|are))\s+an?\s+(?:(?!(?:bit|little|lot|tad|the|under|in|of|over|my|to)\b)[\w-]+\s+){0,2}?"
    r"(?:\w{2,}(?:er|or|ist|ian|ant|man|woman)|nurse|vet|cook|chef|judge|pilot|smith|clerk|student|widow|mum|dad|orphan|twin|nun|monk|family)\b"
    r"(?=\s*(?:[,;.!:–—]|$|(?:in|at|with|of|for|from|by|and|on|who)\b))|\bfor\s+a\s+living\b"
)
ADVICE = patterns.pattern(r"\byou\s+(?:should|could|can|might|may|need|must|have\s+to|ought)\b")
VOCATIVE = patterns.pattern(r"(?:^|,)\s*(?:[a-z]+\s+)?[A-Z][a-z]+\s*[!.]*$|^(?:\w+,?\s+){1,2}[A-Z][a-z]+\s*[,!]")
ABLE = frozenset("have eat drink swallow take tolerate wear drive swim digest fly ride climb lift bend eat smell taste".split())
AT_ONCE = frozenset(
    "check test read send run have eat drink sleep write open close use put show start stop restart use bring call copy paste click push"
    " walk sit stand wait rest grab fetch pick give keep close do be".split()
)
SEASONS = frozenset("winter summer spring autumn year years month weekend holidays christmas easter".split())
SOON = frozenset("now later soon tonight today tomorrow quickly first just minute second moment while then".split())
TRAVELS = frozenset("go fly move travel visit take spend leave".split())
CHATTY = frozenset(
    "think guess know see need hope wonder mean feel understand agree try look talk ask say tell wait bet suppose notice"
    " realise realize remember forget worry hear find want wish thank appreciate apologise apologize promise get let make come"
    " go do be seem sound continue".split()
)
TALK = frozenset(
    s
    for w in (
        "coffee lunch break breakfast dinner nap sleep meeting meetings question answer joke traffic weather rain morning"
        " evening night day week"
        " weekend moment second minute message reply explanation output response link chat conversation today help thanks track time typo"
        " okay fine win"
        " delivery sun snow wind news fun luck idea point mind found again".split()
    )
    for s in words.normal(w)
)


def nothing_in(reading: Reading) -> str:
    """The rule by which a sentence that says nothing to keep is refused."""
    if refusals.GREETING.match(reading.low) or refusals.PASSING.match(reading.low):
        return "small_talk"
    return "request" if _task(reading) else "nothing_to_keep"


def kind_of(reading: Reading) -> Kind:
    clause, text = reading.clause, reading.low
    if clause is not None and clause.subject and clause.verb in lexicon.TASTES and phrases.phrase(clause.subject).whole == phrases.USER:
        return "preference"
    if reading.lows & TASTES and not (clause is not None and clause.past) and TASTE.search(text):
        return "preference"
    if reading.turned:
        return "decision"
    if clause is not None and clause.command:
        return "instruction"
    if reading.lows & COMMITTING and COMMITTED.search(text):
        return "decision"
    if (
        clause is not None
        and (clause.modal in ("will", "won't", "shall") or clause.going)
        and (clause.verb in TRAVELS or PLANNED.search(text))
    ):
        return "plan"
    if clause is not None and clause.past and clause.verb not in ("be", "have", "like"):
        return "event"
    return "fact"


def negated(reading: Reading) -> bool:
    """Whether the sentence denies what it speaks of."""
    if reading.clause is not None and reading.clause.negated:
        return True
    low = reading.low
    if reading.clause is not None and reading.clause.command:
        return bool(NOT.search(low))
    return ("no" in low or "can" in low) and bool(NO_MORE.search(low))


def keeping(reading: Reading) -> bool:
    """Whether there is anything in it that would be missed."""
    slot, clause, text = reading.slot, reading.clause, reading.low
    content = [t for t in reading.terms if t not in TALK]
    if reading.turned:  # "you win" by itself only announces what is turned round
        return bool(content) and not text.endswith(":")
    if not content and clause is not None and clause.subject:
        content = [s for s in words.normal(clause.verb) if s not in TALK]
    if (
        not content
        or text.endswith(":")
        or AIMLESS.match(text)
        or _to_the_listener(reading)
        or (reading.cue.cue == "none" and _task(reading))
    ):
        return False
    kind = kind_of(reading)
    if kind == "instruction":
        return (
            bool(STANDING.search(text)) or reading.cue.cue != "none" or anchored(reading) or (slot is not None and slot.rule == "call_me")
        )
    if slot is not None and slot.subject and any(phrases.shape(v) != "words" for v in slot.values):
        return True
    if reading.cause is not None and (len(content) > 2 or reading.cause.late):
        return True
    if reading.cue.cue == "correction" and (reading.cue.about or (slot is not None and slot.rule == "bare")):  # "it's Ada, not Ida"
        return True
    if clause is None:
        telling = len(content) > 1 and (":" in text or text.startswith("no ") or _digits(text))
        return (telling and anchored(reading) and not refusals.GREETING.match(text)) or bool(POLICY.match(text))
    passing = bool(refusals.PASSING.match(text)) and not _digits(text)
    if passing:
        return False
    if reading.cue.cue in ("correction", "reversal", "update"):
        return True
    if len(content) < 3 and refusals.GREETING.match(text):
        return False
    if kind in ("decision", "plan", "preference") and (len(content) > 1 or kind != "plan" or clause.negated):
        return _meant(reading, kind)
    return _told(reading, content) or anchored(reading)


def _to_the_listener(reading: Reading) -> bool:
    """You are doing a great job: nothing about the speaker."""
    clause = reading.clause
    return (clause is not None and bool(clause.subject) and clause.subject[0].low in ("you", "your")) or bool(
        "you" in reading.lows and ADVICE.search(reading.low)
    )


def _meant(reading: Reading, kind: Kind) -> bool:
    """A decision and a taste, yes; of what one will do next or wants to do, only what has a name, a number or a relation in it."""
    clause = reading.clause
    own = clause is not None and bool(clause.subject) and phrases.phrase(clause.subject).whole == phrases.USER
    wanted = clause is not None and clause.verb == "want" and bool(clause.rest) and clause.rest[0].low in ("to", "you")
    if wanted or (kind == "plan" and own):
        return anchored(reading) or (clause is not None and (clause.negated or (not wanted and _intended(reading, clause))))
    return True


def _intended(reading: Reading, clause: Clause) -> bool:
    """Something of weight that one means to do: not what is done at once, and not what is only called "it"."""
    thing = next((w for w in slots.after_adverbs(clause.rest) if w.low not in lexicon.PREPOSITIONS), None)
    if reading.lows & LASTING or (reading.lows & SEASONS and clause.verb not in CHATTY - TRAVELS):
        return True
    return (
        clause.verb not in CHATTY | AT_ONCE
        and not reading.lows & SOON
        and thing is not None
        and thing.low in lexicon.DETERMINERS
        and thing.low not in ("this", "that", "these", "those", "all", "some", "any")
        and not TALK.issuperset(words.words(" ".join(w.low for w in clause.rest[:4])))
    )


def _task(reading: Reading) -> bool:
    """Something to be done here and now."""
    i = 0
    found = reading.words
    while i < len(found) and found[i].low in ("please", "pls", "kindly", "just", "now", "then"):
        i += 1
    return i < len(found) and found[i].low in lexicon.TASKS and not FOR_GOOD.search(reading.low)


def _digits(text: str) -> bool:
    return any(map(str.isdigit, text))


def anchored(reading: Reading) -> bool:
    """Does it hold a name, a number or a relation of the speaker's? Not the name that somebody is called by: "Great, Ann!"."""
    if _digits(reading.low):
        return True
    if any(w.capital and w.low != "i" for w in reading.words[1:]) and not VOCATIVE.search(reading.text):
        return True
    if "mine" in reading.lows or "ours" in reading.lows:
        return True
    return bool(reading.lows & lexicon.MINE) and any(m[1] not in lexicon.PASSING for m in RELATION.finditer(reading.low))


def _told(reading: Reading, content: list[str]) -> bool:
    """Whether the speaker tells something about themselves, or of a deed."""
    clause, slot = reading.clause, reading.slot
    if clause is None:
        return False
    subject = phrases.phrase(clause.subject)
    if not clause.subject or subject.whole == phrases.USER:
        return _told_of_self(reading, clause, content)
    if subject.pronoun:
        return False
    placed = slot is not None and bool(slot.values) and " " in slot.attribute and not clause.past and len(content) > 2
    return placed or (subject.definite and (clause.verb in lexicon.DEEDS or clause.going))


def _told_of_self(reading: Reading, clause: Clause, content: list[str]) -> bool:
    slot = reading.slot
    if clause.verb == "be":
        return bool(reading.lows & LASTING) or WHO.search(reading.low) is not None
    if clause.verb in lexicon.TASTES or clause.verb in lexicon.DEEDS:
        return slot is not None and (bool(slot.values) or clause.verb in lexicon.DEEDS)
    if clause.modal and clause.negated and clause.verb in ABLE and slot is not None:  # "I can't have dairy"
        return bool(slot.values)
    phrasal = slot is not None and bool(slot.values) and " " in slot.attribute and not slot.attribute.endswith(" to")
    talk = (
        clause.verb in CHATTY
        and not phrasal
        and not (clause.going and clause.verb not in ("try", "have", "look", "feel", "think", "need", "go", "get"))
    )
    return bool(clause.subject) and not talk and not clause.modal and bool(content)
