"""The model that is there when no other is: it answers from the prompt by choosing statements, and makes none of its own.

It reads the prompt as the server assembled it, ranks the statements in it against the question and says the best of them back. It is
deterministic and small, and says so; it knows nothing of the world, of sessions, or of how the prompt came about.

    model       the port: one reply, whole or streamed
    reading     the prompt: passages and their statements, what the user wants
    questions   taken apart into what they ask about
    ranking     which statements answer
    wording     what is said
    forms       tool calls and response formats
    lexicon     words and stems
    sentences   where they end, which of them ask
    topics      what words stand for
    persons     "I" and "you", exchanged
    patterns    regular expressions, compiled late
"""

from __future__ import annotations

from mnemon.model.builtin.model import BuiltinModel

__all__ = ["BuiltinModel"]
