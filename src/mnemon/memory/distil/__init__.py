"""Understanding what is said, by rules of language and nothing else: no model, no clock, no database.

`distil` finds statements in a message, `judge` weighs one against what is known, `asked` says what a question is after.
"""

from mnemon.memory.distil.distilling import VERSION, distil
from mnemon.memory.distil.judging import judge
from mnemon.memory.distil.questions import asked

__all__ = ["VERSION", "asked", "distil", "judge"]
