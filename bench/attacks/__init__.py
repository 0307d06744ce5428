"""Attacks on a gateway, and what they may cost: `python -m bench.attacks`. A module each for those of one kind."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `loading`, as for the scripts beside this folder
