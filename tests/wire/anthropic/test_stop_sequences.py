"""Stop sequences, found in text that comes in pieces of any size."""

import pytest

from callwright.wire.anthropic.stop_sequences import StopSequences

# Sequences, the text, what goes out, which sequence it was.
CASES = [
    (["</block>"], "<block>no</block> and more", "<block>no", "</block>"),
    (["</block>"], "<block>no</bloc", "<block>no</bloc", None),
    (["END", "EN"], "a END", "a ", "EN"),
    (["\n\n", "Observation:"], "one\ntwo\n\nthree", "one\ntwo", "\n\n"),
    (["aab"], "aaab", "a", "aab"),
    (["é🙂"], "xé🙂y", "x", "é🙂"),
    ([""], "all of it", "all of it", None),
    ([], "all of it", "all of it", None),
    (["never"], "neve never", "neve ", "never"),
]


@pytest.mark.parametrize(("sequences", "text", "out", "hit"), CASES)
def test_text_ends_before_the_first_however_it_is_cut(
    sequences: list[str], text: str, out: str, hit: str | None
) -> None:
    for at in range(len(text) + 1):
        for size in (1, 2, len(text) or 1):
            stops = StopSequences(sequences)
            pieces = [text[:at], *(text[n : n + size] for n in range(at, len(text), size))]
            said = "".join([*map(stops.push, pieces), stops.flush()])
            assert (said, stops.hit) == (out, hit)


def test_only_what_may_be_a_begin_is_held() -> None:
    stops = StopSequences(["</block>"])
    assert stops.push("a < b </") == "a < b "
    assert stops.push("p>") == "</p>"
