"""Everything durable: drivers for SQLite and PostgreSQL, and the repositories written once over both."""
