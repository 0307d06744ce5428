"""What is kept of a prompt does not show: put together of parts, it goes over the wire as it does when it is written at
once, whatever look-alikes its parts end and begin with.
"""

import random
from collections.abc import Sequence
from unittest.mock import patch

import pytest

import callwright.prompt
from callwright.prompt import Collected, Prompt, PromptBuilder
from tests.support.examples import some

CONTROLS = (
    ("<|im_start|>", "<|im_end|>", "<tool_call>", "[INST]", "｜end｜", "<|im_end|>\n<|x"),
    ("<|a|>", "<b", "b>c", "]]]"),
)
# What may become a look-alike with what stands beside it, and what fills a part or the inside of a shape.
ATOMS = (
    *("<|im", "_end|>", "<|im_end|>", "<tool_call>", "<", "|", "|>", "[INS", "T]", "<|", "a|>", "<b", "b>c", "]", "]]"),
    *("\n", "x", "｜end", "｜", "<|" + "q" * 60, "q" * 10 + "|>", "z" * 70, "y" * 300),
)
RUNS = ("text", "control", "json")
Said = Sequence[tuple[str, str]]


def said(chance: random.Random) -> list[tuple[str, str]]:
    return [
        (chance.choice(RUNS), "".join(chance.choice(ATOMS) for _ in range(chance.randrange(5))))
        for _ in range(chance.randrange(1, 5))
    ]


def built(*parts: Said | Collected) -> PromptBuilder:
    """Of parts that are kept, and of what is written anew."""
    out = PromptBuilder()
    for part in parts:
        if isinstance(part, Collected):
            out.put(part)
        else:
            for kind, text in part:
                getattr(out, kind)(text)
    return out


@pytest.mark.parametrize("controls", CONTROLS)
def test_a_prompt_of_kept_parts_goes_over_the_wire_as_one_that_is_written_at_once(controls: tuple[str, ...]) -> None:
    for seed in some(range(2_000), first=len(controls)):
        chance = random.Random(seed)
        words = [said(chance) for _ in range(5)]
        kept = [
            built([*one, ("text", chance.choice(("", "k" * 300)))], [("text", chance.choice(ATOMS))]) for one in words
        ]
        collected = [one.collected() for one in kept]
        for _ in range(8):
            chosen = [chance.choice(collected) if chance.random() < 0.7 else said(chance) for _ in range(5)]
            anew = [
                [(_kind(make), text) for make, text in one.runs] if isinstance(one, Collected) else one
                for one in chosen
            ]
            parts, whole = (Prompt(built(*each).pieces(), controls) for each in (chosen, anew))
            assert parts.pieces == whole.pieces
            assert parts.wire_text == Prompt((*whole.pieces,), controls).wire_text


@pytest.mark.parametrize("controls", CONTROLS)
def test_a_part_that_goes_on_goes_over_the_wire_as_one_that_is_written_at_once(controls: tuple[str, ...]) -> None:
    for seed in some(range(2_000), first=len(controls)):
        chance = random.Random(seed)
        row, all_ = Collected(()), list[tuple[str, str]]()
        rows: list[tuple[Collected, list[tuple[str, str]]]] = []
        for _ in range(6):
            new = [said(chance) for _ in range(chance.randrange(4))]
            row = row.then([built(each).collected() for each in new])
            all_ = [*all_, *[run for each in new for run in each]]
            rows.append((row, all_))
            if chance.random() < 0.2:
                row, all_ = chance.choice(rows)  # another one goes on from there
        for row, all_ in chance.sample(rows, len(rows)):
            before, behind = said(chance), said(chance)
            whole = Prompt(built(before, all_, behind).pieces(), controls)
            for part in (row, row.then([Collected(())])):
                out = built(before)
                out._parts += [part, *built(behind)._parts]  # a part, however short
                prompt = Prompt(out.pieces(), controls)
                assert prompt.pieces == whole.pieces
                assert prompt.wire_text == Prompt((*whole.pieces,), controls).wire_text


def test_of_a_part_that_goes_on_only_what_is_new_is_read() -> None:
    row = Collected(())
    for number in range(50):
        with patch("callwright.prompt._join_pieces", side_effect=callwright.prompt._join_pieces) as written:
            row = row.then([built([("control", "<|im_start|>"), ("text", f"{number} " * 200)]).collected()])
            assert Prompt(built(row).pieces(), CONTROLS[0]).wire_text.endswith(f"{number} ")
        assert written.call_count == 1
        assert row._parts == ()


def _kind(make: object) -> str:
    name: str = make.__name__  # type: ignore[attr-defined]
    return {"Text": "text", "Control": "control"}.get(name, "json")


def test_what_is_kept_is_not_read_again() -> None:
    """The second prompt of the same parts has the very strings of the first."""
    parts = [built([("control", "<|im_start|>"), ("text", f"{number} " * 200)]).collected() for number in range(3)]
    prompts = [Prompt(built(*parts, [("text", "new")]).pieces(), CONTROLS[0]) for _ in range(2)]
    for prompt, most in zip(prompts, (4, 0), strict=True):
        with patch("callwright.prompt._join_pieces", side_effect=callwright.prompt._join_pieces) as written:
            assert prompt.wire_text.endswith("new")
        assert written.call_count == most
    assert prompts[0].wire_text == prompts[1].wire_text
    assert all(one is other for one, other in zip(prompts[0].pieces[:-1], prompts[1].pieces[:-1], strict=True))
