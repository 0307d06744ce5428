"""Whether what may be a call is meant: the place where it stands and the prose around it.

Form and place work in every language: a part of a sentence, quotation marks or an element of a page around it, a
heading over it, a question behind it, data that follows it. Words are the last resort, for what stands on lines of its
own behind a colon; they are data, for a few languages.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from callwright.tolerant_json.find import JsonPlace
from callwright.tolerant_json.markers import TRAILING

__all__ = ["CallContext", "in_a_sentence", "introduces_no_call"]

_NEAR: Final = 240  # characters of prose before a candidate that may be about it
_FAR: Final = 2_000  # and behind it

# --- place ---

_SENTENCE_ENDS: Final = ":.!?…。：！？"
_FULL_STOPS: Final = ".!?…。！？"
# What before a candidate says that a sentence, a list of values or a quotation goes on with it.
_GOES_ON = re.compile(r"""[\w,;"'`“”„«‹「『()（\[{<=|、，]\Z""")
# The same at the end of a reply, where a call may follow on words without a full stop.
_OBJECT_WANTED = re.compile(
    r"""[,;"'`“”„«‹「『()（\[{<=|、，是为在はをがに]\Z|\b(?:is|are|was|were|be|as|in|of|with|than|to|like|by|from|means"""
    r"""|ist|sind|war|waren|lautet|hei(?:ß|ss)t|wie|von|aus|es|son|era|como|de|con|en|est|sont|était|comme)\Z""",
    re.IGNORECASE,
)
_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])(?:\s|\Z)")
_HEADING = re.compile(r"(?:^|\n)[ \t]*#{1,6}[ \t][^\n]*\Z")
_LAST_SENTENCE = re.compile(
    r"(?:\A|[.!?…](?=\s)|[。！？]|\n[ \t]*\n)(?:(?![.!?…]\s|[。！？]|\n[ \t]*\n).)*\Z", re.DOTALL
)
# The next line of a transcript.
_NEXT_SPEAKER = re.compile(r"[ \t\r]*\n\s*[\w ]{1,20}[:：][ \t]+\S")
_LABEL = re.compile(r"\s*[\w ]{1,20}[:：]\s*\Z")
_CLOSING_TAG = re.compile(r"\s*</(?!\w*(?:call|tool|function|action|invoke))\w+>", re.IGNORECASE)
_QUESTION = re.compile(r"""[?？](?=[\s"'”’»」』)）*_]|\Z|[^\x00-\xff])|¿""")
_PAIRS: Final = {
    **dict(zip(")]）】」』»›’", "([（【「『«‹‘", strict=True)),
    "”": "“„",
    "“": "„",
}

# --- words ---


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


# A form is taught. In the prose near before it.
_TEACHING = _words(
    r"\b(?:for example|e\.g\.|(?:an?|the|this|following) example\b(?! \w)|example (?:call|request|of (?:an?|how))\b"
    r"|looks? like|would (?:send|write|call|be)|could (?:send|write|call)|you can (?:send|write|call)"
    r"|the (?:form|format|syntax|usage) (?:is|for|of an?\b)|placeholder|here is how"
    r"|this is how (?:an?|the|to|you)\b|such as\s*\Z|ha(?:s|ve) (?:this|the following) (?:form|format|structure))",
    r"(?:^|\n)[\W_]*(?:examples?|usage|syntax|format|beispiele?|verwendung|ejemplos?|uso|exemples?)\b[^\w\n]*(?:\n|\Z)",
    r"\b(?:zum beispiel|z\. ?b\.|(?:ein|das|folgendes) beispiel\b(?! \w)|beispielaufruf|sieht (?:ein|der)\b"
    r"|würde (?:ein|man|der)\b|das format (?:ist|lautet))",
    r"\b(?:por ejemplo|de ejemplo|el formato es|(?:un|una) \w+ enviaría|par exemple|le format est|voici comment)\b",
    r"例如|比如|示例|例子|格式(?:如下|为|是|：|:)|可以这样|用法(?:如下|：|:)",
    r"例えば|たとえば|の例|例[:：]|形式で書|書式|このように",
)
# The reader is to send it. In the sentence that introduces it.
_ADDRESSED = _words(
    r"\b(?:you (?:should|must|need to|have to) (?:send|call|write|post|run)"
    r"|your (?:agent|model|client|server|app|code))\b",
    r"\b(?:(?:müssen|sollten|können) sie|du (?:musst|solltest|kannst)|debes?)\b",
    r"[您你]可以|てください\W*\Z",
)
# In the prose near behind it.
_TAUGHT = _words(
    r"\b(?:arguments?|parameters?|keys?|placeholders?|replace|fill in|you can change)\b",
    r"\b(?:argumente?|schlüssel|platzhalter|ersetze?n?|parámetros?|argumentos?|paramètres?)\b",
    r"参数|替换|引数|置き換え",
)
# It is not made. In the clause that introduces it.
_NEGATED = _words(
    r"\brefus(?:e|es|ed|ing) to\b[^.]{0,80}\Z",
    r"\bno circumstances\b|(?:\b(?:not|never|cannot|without|instead of|rather than)|n't) (?:\w+ ){0,2}"
    r"(?:call|us|run|send|invok|mak|execut|do|perform)\w*\b[^,;.]{0,80}\Z",
    r"\b(?:nicht|nie|niemals|kein\w*)\b[^,;.]{0,60}(?:führ|rufe?n?\b|sende|schick|mache|tun\b|tue\b)[^,;.]{0,60}\Z",
    r"\bno\b[^,;.]{0,40}\b(?:ejecut|llam|env[ií]|hacer|haré|us[aeo])[^,;.]{0,60}\Z",
    r"\b(?:ne |n')[^,;.]{0,30}\bpas\b[^,;.]{0,60}\Z",
    r"(?:不会|不要|不能|不应|不可|没有|并未|别)[^，。；,]{0,20}(?:执行|调用|发送|运行|使用)",
    r"(?:実行|呼び出|送信|使用|呼び)[^。、]{0,10}(?:ません|ない)",
)
# It was made. In the sentence that introduces it.
_PAST = _words(
    r"\b(?:i (?:have |had )?(?:already |just )?(?:called|ran|used|sent|made|executed|invoked|issued)"
    r"|i have (?:already |just )?run|(?:was|were|had|has been) (?:called|sent|executed|made)|previous turn"
    r"|(?:earlier|previously|last time),? i\b)",
    r"\b(?:yesterday|gestern|ayer|hier soir)\b|昨天|昨日",
    r"\b(?:habe|hat|haben|hatte|wurde)\b[^,;.]{0,60}(?:gerufen|geführt|gesendet|geschickt)\b|\b(?:vorhin|zuvor) habe\b",
    r"\b(?:llamé|ejecuté|envié|llamó|ejecutó|envió|he (?:llamado|ejecutado|enviado))\b",
    r"\b(?:j'ai|a été) (?:appelée?|exécutée?|envoyée?|lancée?)\b",
    r"(?:调用|执行|发送|运行)(?:了|过)",
    r"(?:実行|呼び出し|送信)(?:を行い|し)ました",
)
# Others wrote it. In the sentence that introduces it.
_QUOTED = _words(
    r"\b(?:you (?:wrote|sent)|your (?:message|mail|request)|contents? of"
    r"|(?:the|this|that) (?:\w+ )?(?:file|page|document|text|log|e?-?mail|message|line|note|prompt|website)"
    r" (?:contains|says|said|shows|reads|holds))\b",
    r"\b(?:datei|seite|dokument|text|protokoll|mail|nachricht|zeile)\b[^.]{0,40}\b(?:steht|enthält|lautet|zeigt)\b"
    r"|\b(?:steht|stand)[^.]{0,40}\b(?:datei|seite|dokument|text|protokoll|mail|nachricht|zeile)\b|\binhalt de[rs]\b",
    r"\b(?:archivo|documento|página|mensaje|texto|correo|registro)\b[^.]{0,40}\b(?:dice|contiene|muestra)\b",
    r"\b(?:fichier|document|page|message|texte)\b[^.]{0,40}\b(?:dit|contient|montre)\b",
    r"(?:文件|页面|网页|文档|消息|邮件|日志)[^。]{0,10}(?:内容|写|说|包含|显示)",
    r"(?:ファイル|ページ|文書|メール|メッセージ|ログ)[^。]{0,10}(?:内容|書|あります|含)",
)
# Leave is asked for, or a choice offered. In the sentence before it, or at the end of the reply.
_ASKING = _words(
    r"\b(?:shall i|should i|may i|which one|(?:tell me|say) which|please confirm|do you want|would you like"
    r"|let me know (?:which\b|(?:if|whether|when|and) (?:i\b|it\b|this|that|you (?:want|agree|would|prefer)))"
    r"|if you (?:agree|confirm|approve|want|wish|like)|(?:reply|answer|say|type|respond)(?: with)? [\"'“]?yes)\b",
    r"\b(?:soll ich|darf ich|sag\w*(?: sie)?(?: mir)? bescheid|bitte bestätig\w*"
    r"|(?:wenn|falls) (?:du|sie) (?:zustimm|einverstanden|möchte|will|woll)\w*)\b",
    r"\b(?:si est[áa]s? de acuerdo|si (?:quiere|desea)s?|por favor,? confirm\w*)\b",
    r"\b(?:si vous (?:êtes d'accord|voulez|souhaitez)|dois-je|veuillez confirmer)\b",
    r"请(?:您)?(?:确认|回复)|如果(?:您|你)?(?:同意|愿意)|是否(?:执行|继续|要)|要不要|可以吗",
    r"よろしい|よろしけれ|確認してください|しましょうか|でしょうか",
)
_OPTION = re.compile(
    r"(?:^|\n)\W*(?:option|alternative|variante?|opción|möglichkeit|方案|选项|案)\s*\w{1,3}\W*\Z", re.IGNORECASE
)


class CallContext:
    """The prose around places: other places are no prose. `data` are places that hold no calls."""

    def __init__(self, text: str, before: str, places: Sequence[JsonPlace], data: Sequence[JsonPlace]) -> None:
        begins = [place.begin for place in places] + [len(text)]
        ends = [0] + [place.end for place in places]
        parts = [text[end:begin] for end, begin in zip(ends, begins, strict=True)]
        self._places = places
        self._starts = list(accumulate(map(len, parts)))
        self._before = before
        self._prose = "".join(parts)
        self._last = parts[-1]
        self._data = [place.begin for place in data]

    def allows_call(self, number: int, *, exact: bool) -> bool:
        """Whether what stands around a place leaves it a call. `exact`: its names are spelled as the tools'."""
        place = self._places[number]
        if place.place == "whole":
            return True
        at = self._starts[number]
        before = (self._before if at < _NEAR else "") + self._prose[max(0, at - _NEAR) : at]
        behind = self._prose[at : at + _FAR]
        rest = behind[TRAILING.match(behind).end() :].strip()  # type: ignore[union-attr]  # matches always
        if self._is_shown(place, before, behind, rest, number):
            return False
        if place.place == "scan" and rest and before.strip() and not exact:
            return False
        return not (
            introduces_no_call(before, marked=place.place == "marked")
            or _TAUGHT.search(rest[:_NEAR])
            or self._asks(before)
        )

    def _is_shown(self, place: JsonPlace, before: str, behind: str, rest: str, number: int) -> bool:
        """Whether the place is one for what is shown, in any language."""
        line = before.rpartition("\n")[2]
        if _is_enclosed(before, behind) or _CLOSING_TAG.match(behind):
            return True
        if place.place != "fence":
            after = behind.partition("\n")[0]
            # A mark is stronger than the end of a line.
            if (place.place == "scan" or after.strip()) and in_a_sentence(line, after, ends=not rest):
                return True
            if line.lstrip().startswith("#") or (_LABEL.match(line) and _NEXT_SPEAKER.match(behind)):
                return True
            if _LIST_MARK.match(line) and line[_LIST_MARK.match(line).end() :].strip():  # type: ignore[union-attr]
                return True
        if bisect_left(self._data, place.end) < len(self._data):
            return True
        if rest and rest[0].islower() and number + 1 == len(self._places):
            return True
        return bool((rest or number) and _HEADING.search(before.rstrip()))

    def _asks(self, before: str) -> bool:
        last = self._last[:_FAR] + self._last[_FAR:][-_NEAR:]
        return bool(_QUESTION.search(last) or _ASKING.search(last)) or before.rstrip().endswith(("?", "？"))


def in_a_sentence(before: str, after: str, *, ends: bool = False) -> bool:
    """Whether what stands between two parts of a line is a part of one sentence. `ends`: nothing follows at all."""
    before, after = before.strip(), after.strip()
    if not before or _LIST_MARK.fullmatch(before):
        return False
    if (_OBJECT_WANTED if ends else _GOES_ON).search(before):
        return True
    after = after[TRAILING.match(after).end() :]  # type: ignore[union-attr]  # matches always
    if not after:
        return False
    if before[-1] not in _SENTENCE_ENDS or after[0].islower() or not after[0].isalpha():
        return True
    return not after[0].isupper() and before[-1] not in _FULL_STOPS  # a script without capitals


def _is_enclosed(before: str, behind: str) -> bool:
    """Whether brackets or quotation marks stand around a place."""
    closer = behind.lstrip()[:1]
    if closer in ('"', "'"):
        return before.rpartition("\n")[2].count(closer) % 2 == 1
    return any(before.count(opener) > before.count(closer) for opener in _PAIRS.get(closer, ""))


def _last(text: str) -> str:
    """The last sentence of a text."""
    found = _LAST_SENTENCE.search(text.rstrip(" \t\r\n.。!！:："))
    return found.group() if found else text


def introduces_no_call(before: str, *, marked: bool = False) -> bool:
    """Whether words at the end of a text say that what follows is an example, a quotation, a record or not done.

    A `marked` call is more likely meant: only the sentence before it counts.
    """
    near = before[-_NEAR:].rstrip()
    told = _last(near)
    near = told if marked else near
    return bool(
        _TEACHING.search(near)
        or _OPTION.search(near)
        or _ADDRESSED.search(told)
        or _NEGATED.search(told)
        or _PAST.search(told)
        or _QUOTED.search(told)
        or _ASKING.search(told)
    )
