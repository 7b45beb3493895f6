"""Saying it: the words of every reply, those of an answer taken from the statements that were chosen for it.

It knows nothing of tools, formats or the wire.
"""

from __future__ import annotations

import json
import re

from mnemon.model.builtin import patterns, persons, questions, ranking, reading, sentences

UNKNOWN = "I don't know that yet: nothing you've told me so far answers it."
REST_UNKNOWN = "I don't know the rest."
CLOSEST = "I don't know that exactly. The closest you've told me:"
SELF = "I'm Mnemon's built-in responder, small and extractive, not a language model: I remember what I'm told and answer by quoting it."
CANNOT = "I can't do that. " + SELF
INVITATION = "Tell me something to remember, or ask about what you've told me."
WELCOME = f"Hello! {INVITATION}"
BLIND = "I can't look at images or files: I work with words only."
_LONGEST = 600  # characters of a statement

_SAY = patterns.lazy(
    r"^(?:please |just |now |only )*(?:say|echo|(?:reply|respond|answer) (?:with|only)|repeat after me)\b"
    r"(?: exactly| only| just| with| the words?| this| back)*\s*:?\s+(?!what\b|which\b|who\b|how\b|in\b|to\b)(.+)$",
    re.IGNORECASE | re.DOTALL,
)
_ABOUT_SELF = patterns.lazy(
    r"\b(?:who|what) are you\b|\byour name\b|\bare you (?:an? )?(?:ai|bot|llm|robot|human|real|person|gpt|chatgpt|language model)\b"
    r"|\bwhat can you do\b|\b(?:which|what) (?:ai |language )?model\b.*\byou\b",
    re.IGNORECASE,
)
_TASK = patterns.lazy(
    r"^(?:please |can you |could you |would you |will you )*(?:write|translate|draft|compose|generate|rewrite|calculate|compute|draw|code"
    r"|suggest|recommend|help)\b(?: me| us| to| this| the| a| an| some| that|:)",
    re.IGNORECASE,
)
_COURTESIES = {
    r"(?:hi|hello|hey|hiya|greetings|good (?:morning|afternoon|evening|day))(?: there| mnemon| again| all)?": WELCOME,
    r"(?:thanks|thank you|thx|cheers|many thanks)(?: a lot| so much| very much| again)?": "You're welcome.",
    r"bye|goodbye|good night|see you|see you later|talk soon": "Goodbye. I'll remember this conversation.",
    r"ok|okay|yes|no|sure|fine|right|great|cool|perfect|nice|good|yep|nope|alright|all right": "All right.",
    r"(?:(?:hi|hello|hey),? )?(?:how are you|how(?:['’]s| is) it going|how do you do|what['’]s up)(?: doing)?(?: today| there)?": (
        f"All is well here. {INVITATION}"
    ),
    r"/?help": f"{SELF} {INVITATION}",
    r"ping": "pong",
}


def plain_reply(scene: reading.Scene) -> str:
    """What to say when no tool is called for."""
    words = scene.words
    if scene.results:
        return " ".join(_told_result(name, result) for name, result in scene.results)
    if not words:
        return BLIND if scene.pictures else WELCOME
    if courtesy := next((c for p, c in _COURTESIES.items() if re.fullmatch(p, words.strip(" .!,?…"), re.IGNORECASE)), None):
        return courtesy
    if say := _SAY().match(words):
        return say[1].strip().strip("\"'“”`") or WELCOME
    asked, task = questions.asked(words, scene.earlier), bool(_TASK().match(words))
    if asked and _ABOUT_SELF().search(words[:1000]):
        return SELF
    said = _answer(asked, scene.passages) if asked else UNKNOWN if task else _acknowledged(words)
    return CANNOT if task and said.startswith((UNKNOWN, CLOSEST)) else said


def _acknowledged(words: str) -> str:
    told = " ".join(persons.exchanged(sentences.bare(words[:500])).split())
    if len(told) > 200:
        told = told[:200].rsplit(" ", 1)[0].rstrip(",;:") + " …"
    return f"Noted: {_closed(told)}"


def _told_result(name: str, result: str) -> str:
    """A tool's result as a sentence; a flat object is told field by field."""
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        value = result
    if isinstance(value, dict) and value and not any(isinstance(v, (dict, list)) for v in value.values()):
        value = ", ".join(f"{k}: {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
    text = value if isinstance(value, str) else result
    return _closed(f"{name} returned: {text}") if text else f"{name} returned nothing."


def _answer(asked: list[questions.Question], passages: list[reading.Passage]) -> str:
    """The answers to the questions of the newest message, from everything else that is known."""
    said = list(dict.fromkeys(_answer_one(q, passages) for q in asked))
    known = [s for s in said if not s.startswith((UNKNOWN, CLOSEST))]
    if known and len(known) < len(said):
        known.append(REST_UNKNOWN)
    if any(s.startswith("- ") for s in known):
        return "\n".join(dict.fromkeys(line for s in known for line in s.splitlines()))  # two questions may have one answer
    return " ".join(known or said[:1])


def _answer_one(question: questions.Question, passages: list[reading.Passage]) -> str:
    hits = [] if question.open else ranking.rank(question, passages)
    picked = ranking.overview(passages) if question.open else ranking.chosen(question, hits)
    if not picked:
        asked = {u.stem for u in question.units if u.factor >= 1}
        close = next((h.statement for h in hits[:1] if h.coverage >= ranking.CLOSE and not asked.isdisjoint(h.statement.stems)), None)
        return f"{CLOSEST} {_spoken(close, question, [])}" if close else UNKNOWN
    said = list(dict.fromkeys(_spoken(s, question, picked) for s in picked))
    return "\n".join(f"- {s}" for s in said) if len(said) > 2 or (question.many and len(said) > 1) else " ".join(said)


def _spoken(statement: reading.Statement, question: questions.Question, picked: list[reading.Statement]) -> str:
    text = _said(statement.text, statement.role)
    if not statement.before.isdisjoint(u.stem for u in question.units) and statement.previous not in {p.text for p in picked}:
        text = f"{_said(statement.previous, statement.role)} {text}"
    if question.kind == "when" and statement.date and not questions.MARKS["when"]().search(statement.text):
        text += f" (Noted on {statement.date}.)"
    return text


def _said(text: str, role: str) -> str:
    """What stands in the prompt as the model may say it to the user."""
    text = sentences.bare(text[:_LONGEST])
    return _closed(persons.exchanged(text) if role == "user" else text)


def _closed(text: str) -> str:
    """With a full stop, unless the last word is one that a full stop would change."""
    text = text.rstrip()
    return text + "." if text[-1:].isalnum() and not re.search(r"[/@]\S*$", text) else text
