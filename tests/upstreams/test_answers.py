"""The JSON of a server's answers: where it was cut off."""

import json

import pytest

from callwright.upstreams.answers import is_unfinished

TEXT = json.dumps({"a": [-12.5e-7, True, None], "wet “\ud83c\udf27”": "x\n\\", "b": {}, "half": "\ud83c"}).encode()


def test_each_begin_of_a_json_text_is_unfinished() -> None:
    for text in (TEXT, json.dumps({"é": "ö – 🌧"}, ensure_ascii=False).encode()):
        assert [at for at in range(1, len(text)) if not is_unfinished(text[:at])] == []


@pytest.mark.parametrize(
    "data", [TEXT, b"", b" \n", b"{]", b"{not json", b'{"a": tru}', b"[1.}", b"hello", b"[" * 200_000]
)
def test_what_is_whole_or_no_json_is_not(data: bytes) -> None:
    assert not is_unfinished(data)
