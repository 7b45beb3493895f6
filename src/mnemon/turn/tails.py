"""The live transcripts that were used last, kept in memory: the next turn of a busy conversation need not read them again.

Nothing here is ever trusted by itself. A transcript is handed out only for the very history it was kept for, which the lineage's row
names by digest; so it does not matter who wrote meanwhile, or where.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from mnemon.core.records import Lineage, StoredMessage

MOST_TOKENS = 4_000_000  # some twenty megabytes of text
MOST_ROOTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Which history a live transcript belongs to, and where it begins."""

    chain: bytes
    compacted_to: int
    branches: int
    erasures: int

    @classmethod
    def of(cls, lineage: Lineage) -> Version:
        return cls(chain=lineage.chain, compacted_to=lineage.compacted_to, branches=lineage.branches, erasures=lineage.erasures)


class Tails:
    """Live transcripts by lineage, the one not used for longest goes first; and the roots of sessions that were used."""

    def __init__(self) -> None:
        self.mutex = threading.Lock()  # turns begin on other threads, where the database needs them
        self.kept: OrderedDict[int, tuple[Version, Sequence[StoredMessage], int]] = OrderedDict()
        self.roots: OrderedDict[tuple[str, str], str] = OrderedDict()
        self.tokens = 0

    def get(self, lineage: Lineage) -> Sequence[StoredMessage] | None:
        with self.mutex:
            version, messages, _ = self.kept.get(lineage.id, (None, (), 0))
            if version != Version.of(lineage):
                return None
            self.kept.move_to_end(lineage.id)
            return messages

    def keep(self, lineage: int, version: Version, messages: Sequence[StoredMessage]) -> None:
        sizes = [m.tokens for m in messages if m.tokens is not None]
        if len(sizes) < len(messages):
            return  # not counted yet: a session's first moments, or a model whose tokenizer is still loading
        size = sum(sizes)
        with self.mutex:
            _, _, freed = self.kept.pop(lineage, (None, (), 0))
            self.kept[lineage] = (version, messages, size)
            self.tokens += size - freed
            while self.tokens > MOST_TOKENS:
                _, (_, _, freed) = self.kept.popitem(last=False)
                self.tokens -= freed

    def root_of(self, tenant: str, session_id: str) -> str | None:
        """The root of the conversation that a session was part of when it was used last; whoever asks finds out whether it still is."""
        with self.mutex:
            return self.roots.get((tenant, session_id))

    def keep_root(self, tenant: str, session_id: str, root: str) -> None:
        with self.mutex:
            self.roots[tenant, session_id] = root
            if len(self.roots) > MOST_ROOTS:
                self.roots.popitem(last=False)

    def forget(self, tenant: str, session_id: str) -> None:
        with self.mutex:
            self.roots.pop((tenant, session_id), None)
