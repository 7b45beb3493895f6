"""What a question asks for: the words to look for, who may have spoken, and what its meaning is taken from. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from mnemon.memory import marks, words

LONGEST = 20_000  # characters; a question stands at the end of what was pasted before it
MEANT = 2000  # characters of its end that say what it is about


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A message that asks."""

    words: tuple[str, ...]
    meant: str

    @property
    def speakers(self) -> list[str]:
        """The marks of those it may name."""
        return marks.speakers(self.words)


def read(text: str) -> Question:
    asked = tuple(dict.fromkeys(words.words(text[-LONGEST:])))
    return Question(words=asked, meant=text[-MEANT:])
