"""What of a request is new: told apart from what is stored, however a client sends its history."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemon.core.records import Json, Message, chained
from mnemon.turn.reconcile import Difference, Digests, reconcile

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def message(text: str) -> Message:
    """A message in short: `u…` is the user's, `a…` the assistant's, `t…` a tool's result, `c…` a tool call."""
    body: Json = {"role": {"u": "user", "a": "assistant", "c": "assistant", "t": "tool"}[text[0]], "content": text}
    if text[0] == "c":
        body |= {"content": None, "tool_calls": [{**CALL, "id": text}]}
    if text[0] == "t":
        body["tool_call_id"] = "c" + text[1:]
    return Message(body)


def short(one: Message) -> str:
    """The other way round."""
    return one.text or str(one.calls[0]["id"])


@dataclass
class Transcript:
    """A stored path, as the store keeps it: positions are never used twice."""

    path: list[tuple[int, Message]]
    next: int = 1
    loads: int = 0

    @classmethod
    def of(cls, *texts: str) -> Transcript:
        """A path that was said in order, with a gap where something was edited once."""
        made = cls([])
        for index, text in enumerate(texts):
            made.next += 3 if index == 2 else 0
            made.path.append((made.next, message(text)))
            made.next += 1
        return made

    def digests(self) -> Digests:
        """What the store loads when it is asked to."""
        self.loads += 1
        chain, found = b"", []
        for position, stored in self.path:
            chain = chained(chain, stored.digest())
            found.append((position, stored.digest(), chain))
        return found

    @property
    def head(self) -> bytes:
        """The chain of the whole path."""
        chain = b""
        for _, stored in self.path:
            chain = chained(chain, stored.digest())
        return chain

    def compare(self, *sent: str | Message, whole: bool = False) -> Difference:
        """What of these messages is new."""
        messages = [m if isinstance(m, Message) else message(m) for m in sent]
        return reconcile(messages, head=self.head, stored=self.digests, whole=whole)

    def apply(self, difference: Difference) -> list[Message]:
        """The path as a commit leaves it, checked for the chain it continues."""
        kept = [(p, m) for p, m in self.path if difference.cut is None or p < difference.cut]
        chain = b""
        for _, stored in kept:
            chain = chained(chain, stored.digest())
        assert chain == difference.chain
        return [m for _, m in kept] + list(difference.new)


def told(transcript: Transcript, *sent: str | Message, whole: bool = False) -> tuple[list[str], int | None]:
    """(what is new, where the stored path is cut)."""
    found = transcript.compare(*sent, whole=whole)
    transcript.apply(found)
    return [short(m) for m in found.new], found.cut


def test_the_newest_message_alone() -> None:
    """A client that sends only what is new adds just that; the store is not even asked for its digests."""
    talk = Transcript.of("u1", "a1")
    assert told(talk, "u2") == (["u2"], None)
    assert told(talk, "u2", "u3") == (["u2", "u3"], None)
    assert told(talk, "u1") == (["u1"], None), "the same words again are a new message"
    assert talk.loads == 0


def test_the_first_request() -> None:
    """Where nothing is stored everything is new, a history included."""
    assert told(Transcript.of(), "u1", "a1", "u2") == (["u1", "a1", "u2"], None)
    assert told(Transcript.of(), "u1", whole=True) == (["u1"], None)


def test_the_whole_history_again() -> None:
    """What is stored is recognised, without loading it; only the rest is new."""
    talk = Transcript.of("u1", "a1", "u2", "a2")
    assert told(talk, "u1", "a1", "u2", "a2", "u3") == (["u3"], None)
    assert told(talk, "u1", "a1", "u2", "a2", "u3", "u4") == (["u3", "u4"], None)
    assert talk.loads == 0


def test_a_window_of_the_history() -> None:
    """A client that keeps the last part of a history continues it, wherever its window begins."""
    talk = Transcript.of("u1", "a1", "u2", "a2", "u3", "a3")
    assert told(talk, "u3", "a3", "u4") == (["u4"], None)
    assert told(talk, "a2", "u3", "a3", "u4") == (["u4"], None)
    assert told(talk, "a3", "u4") == (["u4"], None)
    assert told(talk, "u2", "a2", "u3", "a3", "u4", "u5") == (["u4", "u5"], None)


def test_an_edited_message() -> None:
    """Where a history parts from the stored one, the rest of the stored one is cut off and left as a branch."""
    talk = Transcript.of("u1", "a1", "u2", "a2", "u3", "a3")
    positions = [p for p, _ in talk.path]
    assert told(talk, "u1", "a1", "u2", "a2", "u3 edited") == (["u3 edited"], positions[4])
    assert told(talk, "u1", "a1", "u2 edited") == (["u2 edited"], positions[2])
    assert told(talk, "u1", "a1 edited", "u2", "a2", "u3") == (["a1 edited", "u2", "a2", "u3"], positions[1])
    assert told(talk, "u1 edited", "a1", "u2") == (["u1 edited", "a1", "u2"], positions[0])


def test_a_regenerated_reply() -> None:
    """A history that ends before the stored reply asks for another one: nothing is new, the reply becomes a branch."""
    talk = Transcript.of("u1", "a1", "u2", "a2")
    positions = [p for p, _ in talk.path]
    assert told(talk, "u1", "a1", "u2") == ([], positions[3])
    assert told(talk, "u1", whole=True) == ([], positions[1])


def test_a_single_message_of_a_client_that_sends_all() -> None:
    """From a client that always sends its whole history, one message is a history of one."""
    talk = Transcript.of("u1", "a1", "u2", "a2")
    assert told(talk, "u1 edited", whole=True) == (["u1 edited"], talk.path[0][0])
    assert told(talk, "u9", whole=False) == (["u9"], None)


def test_a_client_that_sends_all_sends_no_window() -> None:
    """From such a client a history that looks like the end of the stored one is an edited one all the same."""
    talk = Transcript.of("u1", "a1", "u1", "a1")
    assert told(talk, "u1", "a1", "u2", whole=True) == (["u2"], talk.path[2][0])
    talk = Transcript.of("u1", "a1", "u2", "a2")
    assert told(talk, "u2", "a2", "u3", whole=True) == (["u2", "a2", "u3"], talk.path[0][0])


def test_a_history_of_somebody_else() -> None:
    """A history that shares nothing with the stored one replaces it as the active path; the stored one is a branch."""
    talk = Transcript.of("u1", "a1")
    assert told(talk, "u7", "a7", "u8") == (["u7", "a7", "u8"], talk.path[0][0])


@pytest.mark.parametrize(
    ("stored", "sent"),
    [
        ({"role": "user", "content": "hello there\n"}, {"role": "user", "content": "hello  there"}),
        ({"role": "assistant", "content": "yes", "reasoning_content": "hm"}, {"role": "assistant", "content": " yes"}),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "assistant", "content": "", "tool_calls": [CALL]}),
        ({"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None}, {"role": "assistant", "tool_calls": [CALL]}),
        ({"role": "user", "content": "hi"}, {"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    ],
)
def test_what_clients_do_to_a_history(stored: Json, sent: Json) -> None:
    """A client that trims, drops reasoning or turns null into "" still sends what is stored."""
    talk = Transcript([(1, message("u1")), (2, Message(stored)), (3, message("a3"))])
    assert told(talk, "u1", Message(sent), "a3", "u4") == (["u4"], None)
    assert told(talk, Message(sent), "a3", "u4") == (["u4"], None)


def test_tool_calls_and_results() -> None:
    """A result continues its call, sent alone or with all that came before; another call's result is another history."""
    talk = Transcript.of("u1", "c1")
    assert told(talk, "t1") == (["t1"], None)
    assert told(talk, "u1", "c1", "t1") == (["t1"], None)
    assert told(talk, "c1", "t1") == (["t1"], None)
    assert told(talk, "u1", "c2", "t2") == (["c2", "t2"], talk.path[1][0])
    longer = Transcript.of("u1", "c1", "t1", "a1")
    assert told(longer, "u1", "c1", "t1", "a1", "u2") == (["u2"], None)


TEXTS = st.lists(st.sampled_from(["u1", "a1", "u2", "a2", "u3", "a3", "c4", "t4"]), max_size=9)


@settings(max_examples=400)
@given(stored=TEXTS, sent=TEXTS.filter(bool))
def test_a_whole_history_becomes_the_path(stored: list[str], sent: list[str]) -> None:
    """Whatever is stored, after a client that sends all has sent its history, the active path is that history, message by message."""
    talk = Transcript.of(*stored)
    found = talk.compare(*sent, whole=True)
    assert [short(m) for m in talk.apply(found)] == sent


@settings(max_examples=400)
@given(stored=TEXTS, sent=TEXTS.filter(bool))
def test_nothing_that_was_sent_is_lost(stored: list[str], sent: list[str]) -> None:
    """Whatever a client sends, the path ends with just that afterwards, and nothing stored is cut without being sent anew."""
    talk = Transcript.of(*stored)
    found = talk.compare(*sent)
    after = [short(m) for m in talk.apply(found)]
    assert after[-len(sent) :] == sent
    if found.cut is None:
        assert after[: len(stored)] == stored
    else:
        kept = len(after) - len(sent)
        assert after[:kept] == stored[:kept]


@settings(max_examples=200)
@given(stored=TEXTS, new=TEXTS.filter(bool), start=st.integers(0, 8))
def test_what_is_stored_is_never_stored_twice(stored: list[str], new: list[str], start: int) -> None:
    """A history sent again from anywhere on, with something new behind it, adds the new and only that, if it can be told apart."""
    texts = [f"{t}-{n}" for n, t in enumerate(stored)]  # no two alike
    fresh = [f"{t}-new{n}" for n, t in enumerate(new)]
    sent = texts[min(start, len(texts)) :] + fresh
    if not any(t[0] in "ac" for t in sent):
        return
    assert told(Transcript.of(*texts), *sent)[0] == fresh or start >= len(texts)
