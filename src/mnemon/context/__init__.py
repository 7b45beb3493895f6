"""The prompt: counted, assembled from blocks, compressed. Pure code: no clock, no database, no network."""
