"""Which dialect a model speaks, by all that is known of it: its chat template, its names, its vocabulary.

The output of the template decides. If it cannot be rendered, shows neither tools nor calls, or fits several dialects
equally, the name does; marks in its text are the last resort. A template whose calls no dialect writes becomes a
dialect of its own.
"""

from collections.abc import Collection, Sequence

from callwright.chat_template.dialect import template_dialect
from callwright.chat_template.recognise import Recognised, recognise
from callwright.chat_template.sources import ChatTemplate
from callwright.dialects.detect import Detected, by_name, by_template, holds_marks
from callwright.errors import ConfigError

_BY = {
    "calls": "its chat template writes calls as {0} does",
    "tools": "its chat template shows tools as {0} does, and no calls",
    "reads": "only {0} reads the calls that its chat template writes",
}


def detect(
    template: ChatTemplate | None, names: Sequence[str], *, vocabulary: Collection[str] = (), raw: bool = False
) -> Detected | None:
    """The dialect, with the reason; None without any evidence. The first of `names` that is known counts.
    `vocabulary`: the tokens of the model, if they are at hand. With `raw`, the prompts are to be the dialect's, too: a
    template whose turns are its own is a dialect of its own then.

    Raises `ConfigError` if only the template is left as evidence, and it cannot be rendered.
    """
    tokens = vocabulary or (template.tokens if template is not None else ())
    named = next(filter(None, (by_name(name, tokens) for name in names)), None)
    if template is None:
        return named
    try:
        seen = recognise(template)
    except ConfigError:
        return named or by_template(template.template, tokens) or by_rendering(template)
    if isinstance(seen, Recognised):
        return _as_recognised(seen, named, template, raw=raw)
    if not seen.calls:
        found = named or by_template(template.template, tokens)
    else:
        found = named if named is not None and holds_marks(named.dialect, seen.calls) else None
    return found or by_rendering(template)


def by_rendering(template: ChatTemplate) -> Detected:
    """The dialect that is the template's own. Raises `ConfigError`."""
    dialect = template_dialect(template)
    return Detected(dialect.name, dialect.source)


def _as_recognised(seen: Recognised, named: Detected | None, template: ChatTemplate, *, raw: bool) -> Detected:
    reason = _BY[seen.by].format(seen.dialect)
    if raw and not seen.turns:
        own = by_rendering(template)
        return Detected(own.dialect, f"{reason}, in turns of its own: {own.reason}")
    if seen.rivals:
        reason += f" ({', '.join(seen.rivals)} fit as well)"
        if named is not None and named.dialect in seen.rivals:
            return Detected(named.dialect, f"{named.reason}, and its chat template fits")
    return Detected(seen.dialect, reason, seen.options)
