"""How strictly the form of requests is read: as OpenAI's API does, or as local servers do."""

from msgspec import Struct


class RequestRules(Struct, frozen=True):
    """The rules for requests to a model. `is_lenient`: accept requests that OpenAI's API refuses only for their form.

    Names of tools that servers do not take get an alias, schemas only have to be JSON Schema, tools of unknown types
    are left out, and a history with unpaired calls and outputs is repaired.
    """

    is_lenient: bool = False


STRICT = RequestRules()
