"""GLM 4.5 and 4.6: `<tool_call>f`, then `<arg_key>k</arg_key>` and `<arg_value>v</arg_value>`, each on its line.

Values are text, typed by the schema. Source: the chat templates of GLM-4.5 and GLM-4.6. The model writes its
reasoning's tags itself.
"""

from typing import Final, Literal

from callwright.dialects._glm import GLM_ENDS, glm_turns
from callwright.dialects.base import Dialect, RenderOptions
from callwright.layout.key_values import LINES, KeyValueTags
from callwright.reading.tagged.key_values import KeyValueForm

_TAGS: Final = KeyValueTags(gaps=LINES, between="\n")


class Options(RenderOptions, frozen=True, kw_only=True):
    """`thinking`: `model` leaves it to the model, `off` appends `/nothink` to the user's text, and begins the answer
    with a closed, empty thought.
    """

    thinking: Literal["model", "off"] = "model"


_NOTE: Final = "/nothink"
_TURNS: Final = glm_turns(
    _TAGS,
    user=f"<|user|>\n$text«off !noted¦{_NOTE}»",
    text_slots=lambda text: {"noted": text.endswith(_NOTE)},
    answer="<|assistant|>«off¦\n<think></think>»",
)


DIALECT = Dialect(
    name="glm45",
    aliases=("glm", "glm4", "glm46"),
    model_families="GLM-4.5, GLM-4.6, HyperCLOVA X SEED Think 32B and Omni",
    model_globs=("glm-4.5*", "glm-4.6*", "hyperclovax-seed-think-32b", "hyperclovax-seed-omni"),
    template_markers=("<arg_key> + </arg_key>\n<arg_value>", "<arg_key> + <arg_value>\\n"),
    source="chat templates of GLM-4.5 and GLM-4.6",
    tokenizers=("glm4",),
    stops=GLM_ENDS,
    options=Options,
    prompt=_TURNS,
    calls=KeyValueForm(_TAGS, ends=GLM_ENDS),
)
