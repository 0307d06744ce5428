"""What a server says of itself: the models that it has, and its health."""

from typing import Literal

from msgspec import Struct

__all__ = ["Health", "ModelCard", "ModelList"]


class ModelCard(Struct, kw_only=True):
    """A model that can be asked, for clients of OpenAI's API and of Anthropic's: the same time stands in it twice."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "callwright"
    type: Literal["model"] = "model"
    display_name: str
    created_at: str


class ModelList(Struct, kw_only=True):
    """The models that can be asked."""

    object: Literal["list"] = "list"
    data: list[ModelCard]
    has_more: bool = False
    first_id: str | None = None
    last_id: str | None = None


class Health(Struct, kw_only=True):
    """Whether requests are taken."""

    status: Literal["ok", "draining"]
    version: str
