"""What the gateway does itself within a turn, whichever API asked: tools that it runs, truncation, compaction."""
