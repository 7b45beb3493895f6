"""Static embeddings: the meaning of a text is the mean of its tokens' vectors. No model runs and nothing leaves the machine.

The weights are those that the `wordllama` package carries; they are read from its files, since its own loader would look for newer ones
on the network. The table is mapped, not read, and widened row by row: only the rows that are used get into memory.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from mnemon.memory import vectors
from mnemon.memory.vectors import Floats

WEIGHTS = "weights/l2_supercat_256.safetensors"
TOKENS = "tokenizers/l2_supercat_tokenizer_config.json"
WORDS_KEPT = 20_000
BLANK = "▁"  # opens every word
NUMBERED = re.compile("([^0-9]*)((?:[0-9][^0-9]?)+)")  # no token holds a digit beside anything else
LONGEST_WORD = 40  # characters; longer ones are hardly ever seen again


@cache
def encoder() -> Encoder:
    """The encoder of this process: it takes a moment to make, and tens of megabytes."""
    return Encoder()


class Encoder:
    """Texts to vectors."""

    def __init__(self) -> None:
        folder = package_folder()
        self.table = table(folder / WEIGHTS)
        self.rows = np.empty(self.table.shape, np.float32)  # summing half floats takes ten times as long
        self.known = np.zeros(len(self.table), np.bool_)
        self.tokenizer = Tokenizer.from_file(str(folder / TOKENS))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        # The tokenizer never joins two words, so each can be looked up by itself; that is ten times as fast.
        self.letters = {token: number for token, number in self.tokenizer.get_vocab().items() if len(token) == 1}
        self.words = {"": [self.letters[BLANK]]}
        self.vector = lru_cache(maxsize=64)(self._vector)  # a message is first asked with and then stored

    def packed(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors as they are stored."""
        if not texts:
            return []
        rows = vectors.packed(np.stack([self.vector(text) for text in texts]))
        return [row.tobytes() for row in rows]

    def _vector(self, text: str) -> Floats:
        """The unit vector of a text; zero if there is nothing in it."""
        found = self._tokens(text.split())
        if not found:
            return np.zeros(vectors.DIMENSIONS, np.float32)
        self._widen(found)
        total = np.add.reduce(self.rows.take(found, axis=0))
        length = float(np.sqrt(total @ total))
        return np.asarray(total / length, dtype=np.float32) if length else total

    def _widen(self, tokens: list[int]) -> None:
        """Take up the rows of tokens that were not seen before."""
        if not self.known.take(tokens).all():
            new = [token for token in set(tokens) if not self.known[token]]
            self.rows[new] = self.table[new]
            self.known[new] = True

    def _tokens(self, words: list[str]) -> list[int]:
        """The tokens of all words, in order."""
        known = {word: self.words.get(word) for word in words}
        if new := [word for word, tokens in known.items() if tokens is None]:
            known |= self._looked_up(new)
        return list(chain.from_iterable(known[word] or () for word in words))

    def _looked_up(self, words: list[str]) -> dict[str, list[int]]:
        """The tokens of words that were not seen lately: read in one call, but for digits and what stands between them."""
        parts = {word: self._parts(word) for word in words}
        heads = {head: self.words.get(head) for head, _ in parts.values()}
        if new := [head for head, tokens in heads.items() if tokens is None]:
            found: dict[str, list[int]] = {head: [] for head in new}
            read = self.tokenizer.encode(new, is_pretokenized=True, add_special_tokens=False)
            for place, token in zip(read.word_ids, read.ids, strict=True):
                if place is not None:  # as it is of special tokens only, and none was asked for
                    found[new[place]].append(token)
            heads |= found
            if len(self.words) + len(found) > WORDS_KEPT:
                self.words = {"": self.words[""]}
            self.words.update((head, tokens) for head, tokens in found.items() if len(head) <= LONGEST_WORD)
        return {word: [*(heads[head] or ()), *tail] for word, (head, tail) in parts.items()}

    def _parts(self, word: str) -> tuple[str, list[int]]:
        """What a word begins with, and the tokens of the rest, if that are digits with a character here and there: then each is a token."""
        found = NUMBERED.fullmatch(word)
        tail = [self.letters.get(c, -1) for c in found[2]] if found else []
        return (found[1], tail) if found and -1 not in tail else (word, [])


def package_folder() -> Path:
    """Where the package with the weights is; it need not be imported for that."""
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise FileNotFoundError("the package wordllama, which carries the embeddings' weights, is not installed")
    return Path(found.origin).parent


def table(path: Path) -> np.memmap[Any, np.dtype[np.float16]]:
    """The one array of a safetensors file: eight bytes for the length of a JSON head, the head, the numbers."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        head = json.loads(file.read(size))
    (found,) = [entry for name, entry in head.items() if name != "__metadata__"]
    if found["dtype"] != "F16" or found["shape"][1] != vectors.DIMENSIONS:
        raise ValueError(f"{path.name} holds {found['dtype']} {found['shape']}, not half floats of {vectors.DIMENSIONS} dimensions")
    return np.memmap(path, dtype=np.float16, mode="r", offset=8 + size + found["data_offsets"][0], shape=tuple(found["shape"]))
