"""How strictly the form of requests is read: as OpenAI's API does, or as local servers do."""

from msgspec import Struct


class RequestRules(Struct, frozen=True):
    """What a model takes of a request. `is_lenient`: also what OpenAI's API refuses only for its form.

    Names of tools that servers do not take get an alias, schemas only have to be JSON Schema, tools of unknown types
    are left out, and a history whose calls and outputs do not belong together is mended.
    """

    is_lenient: bool = False


STRICT = RequestRules()
