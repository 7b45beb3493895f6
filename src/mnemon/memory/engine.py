"""What recall computes with, loaded when it is first needed: numpy, the indexes, the embeddings' weights.

Loading takes some tenths of a second and some tens of megabytes, so a server that never recalls should not pay for it, nor one that starts.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # loaded when they are needed
    from mnemon.memory.embeddings import Encoder
    from mnemon.memory.index import Indexes
    from mnemon.memory.vectors import Floats

log = logging.getLogger("mnemon")

PASSAGES_IN_MEMORY = 400_000


class Engine:
    """The indexes and, if `embeddings`, the encoder; both are None until they are loaded."""

    def __init__(self, *, embeddings: bool) -> None:
        self.embeddings = embeddings
        self.indexes: Indexes | None = None
        self.encoder: Encoder | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @property
    def loaded(self) -> bool:
        return self.indexes is not None

    def warm(self) -> None:
        """Begin to load, if nobody has. Returns at once."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._load, name="memory-engine", daemon=True)
                self._thread.start()

    def ready(self) -> None:
        """Load, and wait for the end of it."""
        self.warm()
        if self._thread is not None:
            self._thread.join()

    def vector(self, text: str) -> Floats | None:
        """What a text means, if there is an encoder."""
        return self.encoder.vector(text) if self.encoder is not None else None

    def packed(self, texts: Sequence[str]) -> Sequence[bytes | None]:
        """The vectors of texts as they are stored, or nothing for each while there is no encoder."""
        return self.encoder.packed(texts) if self.encoder is not None else [None] * len(texts)

    def _load(self) -> None:
        # More threads cost ten times as much on busy cores; numpy reads this once, when it is imported.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if self.embeddings:
            try:
                self.encoder = importlib.import_module("mnemon.memory.embeddings").encoder()
            except (ImportError, OSError, ValueError) as error:
                log.warning("no embeddings, recall goes by words alone: %s", error)
        self.indexes = importlib.import_module("mnemon.memory.index").Indexes(most_passages=PASSAGES_IN_MEMORY)
