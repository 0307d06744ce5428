"""Reports of a run for people: lines of a terminal, a web page."""
