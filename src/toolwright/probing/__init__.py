"""What a model server can do, found out by asking it: for `toolwright doctor` and for mode `auto`."""
