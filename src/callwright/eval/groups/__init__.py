"""The groups of cases, each a module with one generator, `cases`; shared helpers are in `words` and `tools`."""
