"""Who somebody is: introductions, trades and families are kept; what only looks like them is not."""

from __future__ import annotations

import pytest

from tests.unit.distil.corpus import heard


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Fadil here: I give oboe lessons in Ulm.", "Fadil"),
        ("Ines Maria speaking, I run a bakery.", "Ines Maria"),
        ("Hello, this is Piet from Delft, I repair clocks.", "Piet"),
        ("This is Noor, I mend sails.", "Noor"),
        ("Hi, Lena here.", "Lena"),
    ],
)
def test_an_introduction_says_who_the_user_is(said: str, name: str) -> None:
    """The whole sentence is kept, as what says the name."""
    (candidate,) = heard(said).candidates
    assert (candidate.text, candidate.subject, candidate.attribute, candidate.values) == (said, "user", "name", (name,))


@pytest.mark.parametrize(
    "said", ["Same here, I use Go.", "This is Berlin.", "Nothing here, I looked.", "This is Python, not Ruby.", "My brother is here."]
)
def test_not_everything_that_is_here_is_a_name(said: str) -> None:
    """What only looks like an introduction names nobody."""
    assert not any((c.subject, c.attribute) == ("user", "name") for c in heard(said).candidates)


@pytest.mark.parametrize("said", ["I'm a baker.", "I am a widow with three sons.", "We are a family of five.", "I'm a student of law."])
def test_what_somebody_is_in_life_is_kept(said: str) -> None:
    """A trade or a family is a fact of the user's."""
    (candidate,) = heard(said).candidates
    assert (candidate.subject, candidate.attribute) == ("user", "is")


@pytest.mark.parametrize("said", ["I'm a mess.", "I'm a bit under the weather.", "I'm a little better.", "I'm a big fan."])
def test_how_somebody_feels_is_not(said: str) -> None:
    """Moods are small talk."""
    assert not heard(said).candidates


@pytest.mark.parametrize("said", ["Never again a gas hob.", "No amplifiers at our gigs.", "All our tools hang in the shed."])
def test_a_policy_without_a_verb_is_kept(said: str) -> None:
    """What is so as a rule is kept though it is said in half a sentence."""
    assert [c.text for c in heard(said).candidates] == [said]


@pytest.mark.parametrize("said", ["No idea for now.", "No problem here.", "No rush on my side.", "No more questions."])
def test_no_is_not_always_a_policy(said: str) -> None:
    """Phrases of politeness are no policy."""
    assert not heard(said).candidates
