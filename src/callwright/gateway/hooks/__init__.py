"""Rules of the operator's own, applied to the turns of the gateway."""
