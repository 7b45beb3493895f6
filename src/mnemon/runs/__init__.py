"""Durable work: what clients start, follow, stop and read again by a name of its own."""
