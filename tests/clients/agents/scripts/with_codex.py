"""Codex, as `callwright launch codex` configures it.

python with_codex.py URL MODEL FOLDER PROMPT
"""

import sys
from pathlib import Path

from tests.clients.codex import Codex

url, model, folder, prompt = sys.argv[1:]
codex = Codex(Path(folder))
codex.configure("--url", f"{url}/v1", "--model", model)
ran = codex.run(prompt)
print(*ran.said, sep="\n")
print(ran.failure or "", ran.stderr, file=sys.stderr)
sys.exit(ran.exit_code)
