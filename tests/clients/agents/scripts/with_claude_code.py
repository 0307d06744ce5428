"""Claude Code, in the environment that `callwright launch claude` gives it.

python with_claude_code.py URL MODEL FOLDER PROMPT
"""

import sys
from pathlib import Path

from tests.clients.claude_code import ClaudeCode, settings

url, model, folder, prompt = sys.argv[1:]
claude = ClaudeCode(Path(folder), url)
ran = claude.run(prompt, model=model, **settings("--url", url, "--model", model))
print(ran.result.get("result", ""))
print(ran.stderr, file=sys.stderr)
sys.exit(ran.exit_code)
