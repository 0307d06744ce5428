"""Probes the capabilities of a model server, for `callwright doctor` and for mode `auto`."""
