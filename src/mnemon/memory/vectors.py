"""Vectors of 256 dimensions in 128 bytes, and how near they are to another.

Half a byte a dimension: on the development conversations no figure moved by more than chance against whole numbers (ADR 0012), and a
passage has to be held in memory whole. A byte holds dimension i in its lower and dimension i + 128 in its upper half.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

DIMENSIONS = 256
HALF = DIMENSIONS // 2
STEPS = 30.0  # steps to 1.0; a unit vector's parts are rarely beyond ±8 of them
BLOCK = 2048  # rows that stay in the processor's cache while they are compared
SIGNS = HALF // 64  # words of 64 signs for a row


def packed(vectors: Floats) -> Bytes:
    """Unit vectors, a row each, in half bytes."""
    steps = np.clip(np.floor(vectors * STEPS), -8, 7).astype(np.int8) + 8
    halves = steps.astype(np.uint8)
    return np.asarray(halves[:, :HALF] | (halves[:, HALF:] << 4), dtype=np.uint8)


def unpacked(rows: Bytes) -> Floats:
    """The vectors again, each part in the middle of its step."""
    return np.concatenate([rows & 15, rows >> 4], axis=1).astype(np.float32) * np.float32(1 / STEPS) - np.float32(7.5 / STEPS)


def likeness(rows: Bytes, vector: Floats) -> Floats:
    """The cosine of each row with a unit vector."""
    scaled = vector / np.float32(STEPS)
    low, high = scaled[:HALF], scaled[HALF:]
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        found[start : start + BLOCK] = (block & 15).astype(np.float32) @ low + (block >> 4).astype(np.float32) @ high
    return np.asarray(found - np.float32(7.5) * scaled.sum(), dtype=np.float32)


def signs(rows: Bytes) -> NDArray[np.uint64]:
    """The signs of the first half of the dimensions, a bit each: enough to find out which rows are worth comparing."""
    return np.packbits((rows & 8) > 0, axis=1).view(np.uint64)


def differing(known: NDArray[np.uint64], asked: NDArray[np.uint64]) -> Bytes:
    """How many signs of each row differ from those asked for."""
    found = np.zeros(len(known), np.uint8)
    for column in range(SIGNS):
        found += np.bitwise_count(known[:, column] ^ asked[column])
    return found
