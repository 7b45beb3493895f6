"""How texts become vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.memory.embeddings import encoder

WORDS = st.lists(st.text(alphabet="abzé▁日🎉.,:-'/)( 0123456789$%", max_size=12), max_size=12).map(" ".join)


@settings(max_examples=200, deadline=None)  # the first example loads the weights
@given(text=WORDS)
def test_words_looked_up_together_are_those_looked_up_alone(text: str) -> None:
    """The meaning of a text is the mean of the tokens of its words as the tokenizer gives them, digits and signs among them."""
    made = encoder()
    tokens = [token for word in text.split() for token in made.tokenizer.encode(word, add_special_tokens=False).ids]
    total = made.table[tokens].astype(np.float32).sum(axis=0)
    expected = total / max(float(np.linalg.norm(total)), 1e-12)
    assert np.allclose(made.vector(text), expected, atol=1e-5)
