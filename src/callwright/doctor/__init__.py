"""What a model server can do, found out by asking it: for `callwright doctor` and for mode `auto`."""
