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


def reconcile(
    sent: Sequence[Message], *, head: bytes, stored: Callable[[], Digests], whole: bool = False, appends: bool = False
) -> Difference:
    """`head` is the chain digest of the stored path (empty if nothing is stored); `stored` loads its digests, only when needed.

    `whole` says that this client is known to send its whole history always, so that a single message is a history too. With `appends`, what
    is not recognised as the end of the stored path is new, whatever it is.
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
    known = {chain: index for index, (_, _, chain) in enumerate(path)}
    shared = max((i for i, chain in enumerate(chains) if chain in known), default=0)
    start, length = (0, 0) if whole else window(sent, path)
    end = start + length if length > shared else (known[chains[shared]] + 1 if shared else 0)
    matched = max(length, shared)
    if end == len(path):
        return Difference(new=tuple(sent[matched:]), chain=head)
    if appends:
        return Difference(new=tuple(sent), chain=head)
    return Difference(new=tuple(sent[matched:]), chain=path[end - 1][2] if end else b"", cut=path[end][0])


def window(sent: Sequence[Message], path: Digests) -> tuple[int, int]:
    """Where a client's window lies in the stored path: (start, how many messages agree), the newest place of the longest agreement.

    One message alone proves nothing ("yes" is said often) unless it is the newest of all.
    """
    digests = [m.digest() for m in sent]
    stored = [digest for _, digest, _ in path]
    best = (0, 0)
    for start in range(len(stored) - 1, -1, -1):
        if stored[start] != digests[0]:
            continue
        length = 1
        while start + length < len(stored) and length < len(digests) and stored[start + length] == digests[length]:
            length += 1
        if length > best[1] and (length > 1 or start + length == len(stored)):
            best = (start, length)
    return best
