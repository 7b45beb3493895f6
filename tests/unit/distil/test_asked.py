"""Questions: what they ask for."""

from __future__ import annotations

import pytest

from mnemon.memory.distil import asked
from mnemon.memory.statements import Asking


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Why did we sell the sheep?", {"why"}),
        ("When is the hearing?", {"when"}),
        ("What did I play before the viola?", {"what", "before"}),
        ("Do I still take statins?", {"still"}),
        ("How many cows do we have?", {"how_many"}),
        ("Who is our vet?", {"who"}),
        ("Where do I live?", {"where"}),
        ("What are my allergies?", {"what", "list_all"}),
        ("What have we decided about the orchard?", {"what", "changed"}),
    ],
)
def test_the_kinds_of_a_question(text: str, kinds: set[Asking]) -> None:
    """The words of a question say what kind of answer it wants."""
    assert asked(text).kinds >= kinds


@pytest.mark.parametrize(
    ("text", "slot"),
    [
        ("Where do I live?", ("user", "home")),
        ("Who do I work for?", ("user", "employer")),
        ("What is my GP called?", ("user", "gp")),
        ("What's the clerk's extension?", ("clerk", "extension")),
        ("Which port does the staging database listen on?", ("database staging", "port")),
        ("When is the exam?", ("exam", "when")),
        ("Who owns the invoice service?", ("invoice service", "owner")),
    ],
)
def test_the_slot_of_a_question(text: str, slot: tuple[str, str]) -> None:
    """A question and the statement that answers it name the same slot."""
    assert slot in asked(text).slots


@pytest.mark.parametrize("text", ["", "?", "I live in Oslo.", "😀", "why " * 5000, "猫は何匹？"])
def test_any_text_can_be_asked(text: str) -> None:
    """Whatever is said, asking for what it asks never fails."""
    assert asked(text) == asked(text)
