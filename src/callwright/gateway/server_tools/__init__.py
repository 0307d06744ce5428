"""Features that the gateway adds to a turn, for every API: server-side tools, truncation, compaction."""
