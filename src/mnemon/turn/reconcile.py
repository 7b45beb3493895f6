"""What of a request is new? Pure: compares the messages a client sent with those that are stored.

A client may send only its newest message, or the whole history again, or the last part of it. What is stored is recognised by digest and
not stored twice; where the histories part, the stored one is left as a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mnemon.core.records import Message, chained

Digests = list[tuple[int, bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """`new` follows the stored path; if `cut` is given, the stored path from that position on becomes a branch."""

    new: tuple[Message, ...]
    chain: bytes
    cut: int | None = None


def reconcile(sent: Sequence[Message], *, head: bytes, stored: Callable[[], Digests], whole: bool = False) -> Difference:
    """`head` is the chain digest of the stored path (empty if nothing is stored); `stored` loads its digests, only when needed.

    `whole` says that this client is known to send its whole history always, so that a single message is a history too.
    """
    claims_history = whole or any(m.role == "assistant" for m in sent)
    if not head or not claims_history:
        return Difference(new=tuple(sent), chain=head)
    chains = [b""]
    for message in sent:
        chains.append(chained(chains[-1], message.digest()))
    if head in chains:
        return Difference(new=tuple(sent[chains.index(head) :]), chain=head)
    path = stored()
    tail = 0 if whole else tail_overlap(sent, path)
    if tail and tail == len(sent) - 1:
        return Difference(new=tuple(sent[tail:]), chain=head)
    known = {chain: index for index, (_, _, chain) in enumerate(path)}
    shared = max((i for i, chain in enumerate(chains) if chain in known), default=0)
    if shared == 0 and tail:
        return Difference(new=tuple(sent[tail:]), chain=head)
    index = known[chains[shared]] + 1 if shared else 0
    return Difference(new=tuple(sent[shared:]), chain=chains[shared], cut=path[index][0])


def tail_overlap(sent: Sequence[Message], path: Digests) -> int:
    """How many of the first messages sent are the last ones stored, as from a client that keeps a window."""
    digests = [m.digest() for m in sent]
    stored = [digest for _, digest, _ in path[-len(sent) :]]
    for length in range(min(len(sent) - 1, len(stored)), 0, -1):
        if stored[-length:] == digests[:length]:
            return length
    return 0
