"""What each problem and each failure means, and what to do next.

The one source of these sentences: for the pages, the tables of the documentation, and the errors that clients get.
"""

from typing import Final

from msgspec import Struct

from callwright.events import ProblemKind


class Explanation(Struct, frozen=True):
    """One sentence and one next step; in both, backticks mark code. `is_repaired`: the answer was fixed, or the model
    was asked again; otherwise the fault is in the answer. `page` of docs/ has more.
    """

    happened: str
    next_step: str
    is_repaired: bool = False
    page: str = ""


_FINE: Final = "Nothing: the call was fixed. If it is frequent, a constraint prevents it (`constrain`)."
_READ: Final = "Nothing: the output was read anyway. If it is frequent, compare the chat template with the model's own."
_TRY: Final = "Mark the tool `strict` so that invalid calls are retried, or try another mode or a larger model."
_LIMIT: Final = "Raise `max_tokens`, or give the server a larger context window."


def _repaired(happened: str, next_step: str = _FINE, page: str = "") -> Explanation:
    return Explanation(happened, next_step, is_repaired=True, page=page)


def _note(happened: str, next_step: str = _READ) -> Explanation:
    return Explanation(happened, next_step, is_repaired=True)


CALLS: Final[dict[ProblemKind, Explanation]] = {
    "unknown_tool": Explanation(
        "The call names a tool that the request does not offer; the name is passed on as written.",
        "Offer the tool, or answer the call with an error: the model then tries another tool.",
    ),
    "non_json_arguments": Explanation("The arguments are not JSON; they are passed on as written.", _TRY),
    "invalid_arguments": Explanation(
        "The arguments do not match the tool's schema; `detail` names the place.",
        _TRY,
    ),
    "incomplete_arguments": Explanation(
        "The output ended inside the arguments. Do not run this call.",
        _LIMIT,
    ),
    "invalid_input": Explanation(
        "The input of a custom tool does not match its grammar; `detail` has line, column, and what may be there.",
        _TRY,
    ),
    "input_unwrapped": _repaired(
        "A code fence, JSON or blank lines around the input of a custom tool were removed: only then does it match the "
        "grammar."
    ),
    "json_repaired": _repaired(
        "The arguments were not strict JSON; `detail` names the rule (single quotes, a missing comma, …)."
    ),
    "argument_coerced": _repaired(
        'A value had another type than its schema requires, such as `"5"` for 5; `detail` names the rule and the place.'
    ),
    "argument_renamed": _repaired(
        "A parameter had a name that the tool does not declare and that can only mean one declared name."
    ),
    "argument_dropped": _repaired(
        "A parameter was written twice with the same value, or as null although it is optional and not nullable; or "
        "null replaced all arguments of a tool that needs none."
    ),
    "argument_repeated": Explanation(
        "A parameter was written twice with different values. Do not run this call.",
        _TRY,
    ),
    "arguments_unwrapped": _repaired("The arguments were inside another call of the same tool, or under an extra key."),
    "tool_name_repaired": _repaired("The name of the tool was misspelled in a way that only one tool matches."),
    "arguments_trailing_text": _repaired("There was text after the arguments; it is in `text`."),
    "arguments_unchecked": Explanation(
        "The tool's schema cannot be compiled (an unresolvable `$ref`, an invalid `pattern`), so the arguments were "
        "not validated; `detail` has the reason.",
        "Fix the schema of the tool.",
    ),
    "arguments_decoded": _repaired("The arguments were a JSON string; they are passed on decoded."),
    "ambiguous_call": Explanation(
        "Text that may be a call, or may only show one, was left as text; `candidate` is the call, if it was read.",
        "If it was meant as a call, set `tool_choice` to `required` for such requests.",
    ),
    "markup_repaired": _repaired(
        "A tag or line break of the format was missing or broken; the text around it closed what was open. `detail` "
        "names it.",
        _READ,
    ),
    "foreign_format": _repaired(
        "The call was written in the format of another model family, which `detail` names, or of none (Claude's tags).",
        "If it is frequent, set that format as the `dialect` of the model.",
    ),
    "markers_in_value": _note("A value contains the format's own markers; it was read as one value."),
    "call_in_text": _repaired(
        "A call in the text became a call: a required one was JSON in the answer, or a server that reads calls itself "
        "left one in the text.",
        "If it is frequent in mode `native`, use mode `raw` or `prompt`: Callwright then reads the output itself.",
    ),
    "call_in_thought": Explanation(
        "The reasoning ended with a call and the answer ended there; it became a call.",
        "Check that this call was meant: it was written as reasoning.",
    ),
    "call_changed": _note(
        "A rule of the gateway changed the arguments of the call; `text` has the model's own.",
        "Nothing: the new arguments match the tool's schema.",
    ),
    "call_denied": Explanation(
        "A rule of the gateway does not allow the call, so it was left out; `detail` has the rule's message.",
        "Ask for another way, or change the rule.",
        page="hooks.md",
    ),
    "call_loop": Explanation(
        "The history ends with a call that had the same output several times in a row; `detail` says whether the "
        "model was warned, or may not make the call.",
        "Return an error that says how to change the call, or end the run.",
        page="guarantee.md#loops",
    ),
    "call_not_allowed": Explanation(
        "The request forbids this call: by `tool_choice`, or because it allows only one call.",
        "Change `tool_choice` or `parallel_tool_calls` if the call was welcome.",
    ),
    "call_missing": Explanation(
        "The request requires a call and the model made none.",
        "Try another mode, a larger model, or a system message that says when to call the tool.",
    ),
    "call_repeated": _repaired(
        "A server that reads calls itself sent one and left it in the text too; it is sent once.",
        "Nothing: the client gets it once. Mode `raw` or `prompt` avoids it.",
    ),
    "call_retried": _repaired(
        "The first answer was invalid and was retried; `detail` says why.",
        "Nothing: the earlier answer was not sent. If it is frequent, a constraint saves the retry (`constrain`).",
        page="guarantee.md",
    ),
    "value_bounded": _note(
        "A value in a call is as large as the grammar allows, and its schema sets no such bound, or there are as many "
        "calls as it allows; the model may have meant to write more.",
        "Raise `max_tokens`: the bound grows with it. Or give the schema a `maxLength` or `maxItems` of your own.",
    ),
    "call_unread": _repaired(
        "The server's own parser failed on the output, which was read here instead; `detail` has the server's message.",
        "Use mode `raw` or `prompt` for this server, or update it.",
    ),
    "invalid_answer": Explanation(
        "The text of the answer does not match the requested `response_format`; `detail` names the place.",
        "Set `strict` in `response_format` so that invalid answers are retried, or try a larger model.",
    ),
    "answer_repaired": _repaired(
        'The answer did not match `response_format` as written and was fixed: a fence or prose removed, quotes, `"5"` '
        "for 5. `text` is the model's own text.",
        "Nothing: the answer was fixed.",
    ),
    "answer_retried": _repaired(
        "The first answer was not in the requested form and was retried; `detail` says why.",
        "Nothing: the earlier answer was not sent.",
    ),
    "answer_unchecked": Explanation(
        "The schema in `response_format` cannot be compiled (an unresolvable `$ref`, an invalid `pattern`), so the "
        "answer was not validated; `detail` has the reason.",
        "Fix the schema. With `strict: true` such a schema is refused.",
    ),
    "model_replaced": _repaired(
        "Another model answers in place of the one that was asked; `detail` names both, and why.",
        "Nothing: nothing of the earlier answer is contradicted. If it is frequent, see why the first model fails.",
        page="operations.md#another-model-when-one-fails",
    ),
    "output_endless": Explanation(
        "The model repeated the same text without end and was stopped; the answer ends as at its token limit, and "
        "`detail` has the text.",
        "Raise the temperature or a repetition penalty, or set `max_repeated_text` if the repetition was meant.",
        page="configuration.md#what-becomes-of-a-call",
    ),
    "search_failed": Explanation(
        "Chat Completions: a web search failed, and the model got the error; `detail` has the reason.",
        "Check the search engine's address and key in the configuration.",
        page="apis.md#web-search",
    ),
    "malformed_call": Explanation(
        "Text was marked as a call but could not be parsed as one; it is in `text`.",
        _TRY,
    ),
}
HARMONY: Final[dict[ProblemKind, Explanation]] = {
    "recipient_sanitized": _note("The recipient had other characters attached to it, or blanks in it."),
    "duplicate_recipient": _note("The recipient was in both places."),
    "namespace_stripped": _note("The recipient had a namespace that does not exist; its last part is an offered tool."),
    "recipient_from_constrain": _note("The tool's name followed `<|constrain|>`."),
    "recipient_from_channel": _note("The tool's name was used as a channel."),
    "recipient_guessed_by_schema": _note(
        "The recipient is missing, and the arguments match exactly one tool.",
        "Check the call. If it is frequent, the server may remove control tokens: ask it to keep them.",
    ),
    "control_tokens_stripped": _note(
        "Control tokens are missing: the server removed them. Or a control token of a call was removed from text "
        "where no call is (`text` has it).",
        "Have the server keep special tokens (`skip_special_tokens: false`), or use another mode.",
    ),
    "imagined_message": Explanation(
        "The model wrote a message of a tool or of the user; it is in `text`.",
        "Check that the server stops at the model's stop tokens.",
    ),
    "incomplete_header": Explanation("The output ended inside a header.", _LIMIT),
    "malformed_header": _note("A header could not be read as a whole; its readable parts were used."),
    "missing_channel": _note("The channel is missing; the text is shown."),
    "missing_header": _note("There was text without any header."),
    "missing_message_token": _note("`<|message|>` is missing between a header and its body."),
    "missing_start": _note("A message had no `<|start|>`."),
    "missing_stop": _note("A message was interrupted by the next one."),
    "redundant_stop": _note("There was a stop token although no message was open."),
    "stray_header_prefix": _note("There was a commentary channel before the real one."),
    "stray_text": _note("There was text between two messages; it is in `text`."),
    "text_after_call_discarded": _note("The model wrote a message to itself after its call; it is in `text`."),
    "unknown_channel": _note("There was a channel that does not exist; the text is shown."),
    "wrong_stop": _note("A call was closed by `<|end|>` or `<|return|>`."),
}
REASONING: Final[dict[ProblemKind, Explanation]] = {
    "unopened_reasoning": _note(
        "There was `</think>` without `<think>`: all text before it was reasoning. A `Turn` has it as reasoning; a "
        "stream has shown it as text already.",
        'If the prompt leaves reasoning open, set `start="reasoning"`, or the dialect\'s option.',
    ),
}
# The reasons for a failed answer.
FAILURES: Final[dict[str, Explanation]] = {
    "unreachable": Explanation(
        "The gateway could not connect to the model server.",
        "Start the server, and compare its address with `upstream` in the configuration.",
    ),
    "timeout": Explanation(
        "The model server sent nothing for too long.",
        "Check the server's load, or raise the timeout in `[limits]`.",
    ),
    "status": Explanation(
        "The model server answered with an HTTP error.",
        "Look for its message in the server's log; `callwright doctor URL` tests the server.",
    ),
    "protocol": Explanation(
        "The model server's answer does not follow its API.",
        "Check that the address is the one of an API, often ending in `/v1`; `callwright doctor URL` tests it.",
    ),
    "cut": Explanation(
        "The connection to the model server was lost in the middle of an answer.",
        "Look for a crash or a lack of memory in the server's log, then send the request again.",
    ),
    "unmet": Explanation(
        "The request requires a call, or an answer in a form, and no attempt gave a valid one.",
        "Try another mode, a constraint (`constrain`), more `retries`, or a larger model.",
        page="guarantee.md",
    ),
    "stopped": Explanation("The gateway was stopping.", "Send the request again."),
    "request_refused": Explanation(
        "The model server refused the request.",
        "The message has its reason; often a field that the server does not know, or a prompt that is too long.",
    ),
    "context_length_exceeded": Explanation(
        "The prompt does not fit the model's context window.",
        "Shorten the conversation, or start the server with a larger window.",
    ),
    "model_not_found": Explanation(
        "The gateway has no model of this name.",
        "Use a name from `GET /v1/models`, or add the model to the configuration.",
    ),
    "insufficient_quota": Explanation(
        "A budget of the key, its team or the model is used up.",
        "Wait for the next day or month, or raise the budget; the page Spend shows them all.",
    ),
    "rate_limit_exceeded": Explanation(
        "The key's limit was reached.",
        "Wait as long as `retry-after` says, or raise the limit of the key.",
    ),
}
PROBLEMS: Final = CALLS | HARMONY | REASONING
EXPLANATIONS: Final[dict[str, Explanation]] = {**{str(kind): one for kind, one in PROBLEMS.items()}, **FAILURES}
