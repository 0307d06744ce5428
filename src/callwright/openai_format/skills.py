"""Skills of a local shell: folders with instructions on the client's machine, which are described to the model.

Source: `LocalEnvironment` and `LocalSkill` of OpenAI's Responses API.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from callwright.conversation import FunctionTool
from callwright.openai_format.errors import type_error

_INTRODUCTION: Final = (
    "These skills are folders on this machine. Before you do what one is for, read the SKILL.md in its folder:"
)


class _Skill(msgspec.Struct):
    name: str
    description: str
    path: str


class _Environment(msgspec.Struct):
    skills: list[_Skill] | None = None


def with_skills(shell: FunctionTool, given: Mapping[str, Any], at: str) -> FunctionTool:
    """The shell as described to the model, with the skills of its environment. Raises `RequestError` that names the
    field; `at` is the path of the tool in the request.
    """
    try:
        environment = msgspec.convert(given.get("environment") or {}, _Environment)
    except msgspec.ValidationError as error:
        raise type_error(error, f"{at}.environment", given.get("environment")) from error
    if not environment.skills:
        return shell
    lines = [f"- {skill.name} ({skill.path}): {skill.description}" for skill in environment.skills]
    told = "\n".join([f"{shell.description}\n\n{_INTRODUCTION}", *lines])
    return msgspec.structs.replace(shell, description=told)
