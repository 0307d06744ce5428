"""Odd requests over HTTP, with the results that RFC 9112 and RFC 9110 require or allow.

`¶` is CRLF; any other character is the byte of its number. A result is the method, path and body that an application
gets, the status of a refusal, after which the connection is closed, 100 for that interim response, or CLOSED if the
connection is closed after an answer. Sections are of RFC 9112, or of RFC 9110 with a `#`.
"""

from typing import Final, NamedTuple

__all__ = ["CLOSED", "ODD_REQUESTS", "OddRequest", "Result"]

CLOSED: Final = "closed"
Result = str | int


class OddRequest(NamedTuple):
    """A section, a request, and its results."""

    section: str
    sent: str
    results: tuple[Result, ...]

    @property
    def raw(self) -> bytes:
        return self.sent.encode("latin-1").replace("¶".encode("latin-1"), b"\r\n")


def of(group: str, *rows: tuple[Result, ...]) -> list[OddRequest]:
    """Rows of a section, a text that replaces `@` in the group, and the results."""
    return [OddRequest(str(section), group.replace("@", str(sent)), tuple(results)) for section, sent, *results in rows]


A: Final = "GET /a"
HELLO: Final = "POST /a hello"

LINES: Final = of(
    "@¶host: a¶¶",
    ("3", "GET /a HTTP/1.1", A),
    ("#9.1", "get /a HTTP/1.1", 400),
    ("#9.1", "FOO /a HTTP/1.1", 400),
    ("#9.1", "GE(T /a HTTP/1.1", 400),
    ("#9.1", "G\0T /a HTTP/1.1", 400),
    ("3", "GE T /a HTTP/1.1", 400),
    ("3", " GET /a HTTP/1.1", 400),
    ("3", "GET  /a HTTP/1.1", 400),
    ("3", "GET\t/a HTTP/1.1", 400),
    ("3", "GET /a\tHTTP/1.1", 400),
    ("3", "GET /a  HTTP/1.1", 400),
    ("3", "GET /a HTTP/1.1 ", 400),
    ("3", "GET HTTP/1.1", 400),
    ("3", "GET", 400),
    ("3", "HTTP/1.1 200 OK", 400),
    ("2.3", "GET /a", 400),
    ("2.3", "GET /a HTTP/0.9", 400),
    ("2.3", "GET /a HTTP/1.0", A, CLOSED),
    ("2.3", "GET /a HTTP/1.2", 400),
    ("2.3", "GET /a HTTP/2.0", 400),
    ("2.3", "GET /a HTTP/3.0", 400),
    ("2.3", "GET /a HTTP/11.1", 400),
    ("2.3", "GET /a HTTP/1.10", 400),
    ("2.3", "GET /a HTTP/1", 400),
    ("2.3", "GET /a HTTP/1.", 400),
    ("2.3", "GET /a HTTP/.1", 400),
    ("2.3", "GET /a HTTP/1,1", 400),
    ("2.3", "GET /a HTTP/+1.1", 400),
    ("2.3", "GET /a HTTP/1.1x", 400),
    ("2.3", "GET /a HTTP/ 1.1", 400),
    ("2.3", "GET /a http/1.1", 400),
    ("2.3", "GET /a HTTPS/1.1", 400),
    ("2.3", "GET /a RTSP/1.0", 400),
    ("2.3", "POST /a RTSP/1.0", 400),
    ("2.3", "OPTIONS /a RTSP/1.0", 400),
    ("2.3", "DESCRIBE /a RTSP/1.0", 400),
    ("2.3", "DESCRIBE /a HTTP/1.1", 400),
    ("2.3", "GET /a ICE/1.0", 400),
    ("2.3", "SOURCE /a ICE/1.0", 400),
    ("2.3", "PRI * HTTP/2.0¶¶SM¶", 400),
    # other protocols: TLS, SSH, a proxy's own protocol, JSON
    ("3", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ("3", "SSH-2.0-OpenSSH_9.6", 400),
    ("3", "PROXY TCP4 192.0.2.1 192.0.2.2 5 80", 400),
    ("3", '{"model": "m"}', 400),
    ("3", "\xff\xfe", 400),
    ("3", "\0\0\0\0", 400),
)

ENDS_OF_LINES: Final = of(
    "@",
    ("2.2", "¶GET /a HTTP/1.1¶host: a¶¶", A),
    ("2.2", "¶¶¶GET /a HTTP/1.1¶host: a¶¶", A),
    ("2.2", "GET /a HTTP/1.1\nhost: a\n\n", 400),
    ("2.2", "GET /a HTTP/1.1¶host: a\n\n", 400),
    ("2.2", "GET /a HTTP/1.1¶host: a¶\n", 400),
    ("2.2", "GET /a HTTP/1.1\rhost: a\r\r", 400),
    ("2.2", "GET /a HTTP/1.1¶host: a\r\r", 400),
    ("2.2", "GET /a HTTP/1.1\r\r\nhost: a¶¶", 400),
    ("2.2", "GET /a HTTP/1.1¶host: a\r\r\n¶", 400),
    ("2.2", "GET /a HTTP/1.1¶ host: a¶¶", 400),
    ("2.2", "GET /a HTTP/1.1¶\thost: a¶¶", 400),
    ("2.2", "GET /a HTTP/1.1¶ ¶host: a¶¶", 400),
)

TARGETS: Final = of(
    "@ HTTP/1.1¶host: a¶¶",
    ("3.2.1", "GET //x", "GET //x"),
    ("3.2.1", "GET /a?b=/c?d", A),
    ("3.2.1", "GET /a/../b", "GET /a/../b"),
    ("3.2.1", "GET /%41", "GET /A"),
    ("3.2.1", "GET /a%zz", "GET /a%zz"),
    ("3.2.1", "GET /" + "a" * 3_000, "GET /" + "a" * 3_000),
    ("3.2.1", "GET /" + "a" * 70_000, 431),
    ("3.2.2", "GET http://a/b", "GET /b"),
    ("3.2.2", "GET http://b/b", "GET /b"),
    ("3.2.2", "GET HTTP://A:80/b?c", "GET /b"),
    ("3.2.2", "GET https://a/b", "GET /b"),
    ("3.2.2", "GET http://[::1]:80/b", "GET /b"),
    ("3.2.2", "GET http://a", "GET /"),
    ("3.2.2", "GET http://a?b", "GET /"),
    ("#4.2.1", "GET http://", 400),
    ("#4.2.1", "GET http:///b", 400),
    ("#4.2.1", "GET http://:80/b", 400),
    ("#4.2.1", "GET http://[/b", 400),
    ("#4.2.4", "GET http://u:p@a/b", 400),
    ("3.2.2", "GET ftp://a/b", 400),
    ("3.2.2", "GET http:/b", 400),
    ("3.2.3", "CONNECT a:1", 400),
    ("3.2.3", "CONNECT /a", 400),
    ("3.2.3", "GET a:1", 400),
    ("3.2.3", "GET a", 400),
    ("3.2.4", "OPTIONS *", "OPTIONS *"),
    ("3.2.4", "GET *", 400),
    ("3.2.4", "OPTIONS *a", 400),
    ("3.2", "GET ?a", 400),
    ("3.2", "GET /a b", 400),
    ("3.2", "GET /\0", 400),
    ("3.2", "GET /\x01", 400),
    ("3.2", "GET /\x7f", 400),
    ("3.2", "GET /\xe9", 400),
)

HOSTS: Final = [
    *of(
        "GET /a HTTP/1.1¶@¶",
        ("3.2", "", 400),
        ("3.2", "x: y¶", 400),
        ("3.2", "host: a¶host: b¶", 400),
        ("3.2", "host: a¶Host: a¶", 400),
        ("3.2", "host: a¶host:¶", 400),
        ("3.2", "host : a¶", 400),
        ("3.2", "HOST:a¶", A),
        ("3.2", "host: \t a \t ¶", A),
    ),
    *of("GET /a HTTP/1.0¶@¶", ("3.2", "", A, CLOSED), ("3.2", "host: a¶host: b¶", 400), ("3.2", "host: a/b¶", 400)),
    *of("GET http://a/b HTTP/1.1¶@¶", ("3.2", "", 400), ("3.2", "host:¶", "GET /b"), ("3.2", "host: a/b¶", 400)),
    *of(
        "GET /a HTTP/1.1¶host: @¶¶",
        *(
            ("#7.2", good, A)
            for good in ("a.b-c_d~", "a:80", "a:", "[::1]", "[::1]:80", "[v1.a:b]", "192.0.2.1", "%41")
        ),
        ("#7.2", "", A),
        *(("#7.2", bad, 400) for bad in ("a,b", "a, b", "u@a", "u:p@a", "a/b", "a/", "a b", "a\tb", "a?b", "a#b")),
        *(("#7.2", bad, 400) for bad in ("a:x", "a:80:80", "a:-1", ":80", "::1", "[::1", "[x]", "[::1]a", "http://a")),
        *(("#7.2", bad, 400) for bad in ("a\\b", '"a"', "<a>", "a%zz", "\xe9", "a\0", "a\x7f")),
    ),
]

FIELDS: Final = of(
    "GET /a HTTP/1.1¶host: a¶@¶¶",
    ("5.1", "x : y", 400),
    ("5.1", "x\t: y", 400),
    ("5.1", ": y", 400),
    ("5.1", "x", 400),
    ("5.1", "x y: z", 400),
    ("5.1", "x:", A),
    ("5.1", "x: \t y \t ", A),
    ("5.1", "x:y:z", A),
    ("#5.1", "!#$%&'*+-.^_`|~09: y", A),
    *(("#5.1", f"x{bad}: y", 400) for bad in '()/;<=>?@[]{}\\",\0\x01\x7f\xe9'.replace("@", "")),
    ("5.2", "x: y¶ z", 400),
    ("5.2", "x: y¶\tz", 400),
    ("5.2", "x:¶ y", 400),
    ("5.2", "x: y¶ ", 400),
    ("#5.5", "x: \xe9", A),
    *(("#5.5", f"x: a{bad}b", 400) for bad in "\0\x01\x0b\x1f\x7f\r\n"),
    ("#5.4", "¶".join(f"x{n}: y" for n in range(200)), A),
    ("#5.4", "x: " + "y" * 3_000, A),
    ("#5.4", "x: " + "y" * 70_000, 431),
    ("#5.4", "¶".join(["x: y"] * 20_000), 431),
)

LENGTHS: Final = of(
    "POST /a HTTP/1.1¶host: a¶@¶¶hello",
    ("6.2", "content-length: 5", HELLO),
    ("6.2", "Content-Length:\t5 \t", HELLO),
    ("#8.6", "content-length: 00005", HELLO),
    *(("#8.6", f"content-length: {bad}", 400) for bad in ("+5", "-5", "5 5", "5;", "5.0", "5e0", "0x5", "five", "5a")),
    *(("#8.6", f"content-length: {bad}", 400) for bad in ("", '"5"', "\xb2", "5\0", "5\x0b", "5_0")),
    ("6.3", "content-length: 5, 6", 400),
    ("6.3", "content-length: 5, 5", 400),
    ("6.3", "content-length: 5,", 400),
    ("6.3", "content-length: 5¶content-length: 6", 400),
    ("6.3", "content-length: 5¶content-length: 5", 400),
    ("6.3", "content-length: 5¶content-length: 0", 400),
    ("6.3", "content-length: 0¶content-length: 5", 400),
    ("#8.6", "content-length: 18446744073709551621", 400),
    ("#8.6", "content-length: 99999999999999999999999", 400),
    ("5.1", "content-length : 5", 400),
    ("5.2", "content-length:¶ 5", 400),
    ("5.2", "content-length: ¶\t5", 400),
    ("6.3", "content_length: 5", "POST /a", 400),
    ("6.3", "x: y", "POST /a", 400),
    ("6.3", "content-length: 4", "POST /a hell", 400),
    ("#7.6.1", "content-length: 5¶connection: content-length", HELLO),
)

CODINGS: Final = [
    *of(
        "POST /a HTTP/1.1¶host: a¶@¶¶5¶hello¶0¶¶",
        ("7.1", "transfer-encoding: chunked", HELLO),
        ("7", "Transfer-Encoding:\tChUnKeD  ", HELLO),
        ("7.1", "transfer-encoding: chunked, chunked", 400),
        ("7.1", "transfer-encoding: chunked¶transfer-encoding: chunked", 400),
        ("6.1", "transfer-encoding: gzip, chunked", 501),
        ("6.1", "transfer-encoding: x, chunked", 501),
        ("6.1", "transfer-encoding: identity, chunked", 501),
        ("6.1", "transfer-encoding: x¶transfer-encoding: chunked", 501),
        *(
            ("6.3", f"transfer-encoding: {bad}", 400)
            for bad in ("gzip", "identity", "x", "xchunked", "chunkedx", "chunk")
        ),
        *(("6.3", f"transfer-encoding: {bad}", 400) for bad in ("chunked, gzip", "chunked, identity", '"chunked"', "")),
        ("6.3", "transfer-encoding: chunked¶transfer-encoding: x", 400),
        ("6.3", "transfer-encoding: chunked¶transfer-encoding:", 400),
        ("7", "transfer-encoding: chunked;x=y", 400),
        ("7", "transfer-encoding: chunked; q=1", 400),
        ("7", "transfer-encoding: chunked chunked", 400),
        ("#5.5", "transfer-encoding: \x0bchunked", 400),
        ("#5.5", "transfer-encoding: chunked\0", 400),
        ("5.1", "transfer-encoding : chunked", 400),
        ("5.2", "transfer-encoding:¶ chunked", 400),
        ("5.2", "x: y¶ transfer-encoding: chunked", 400),
        ("2.2", "x: y\ntransfer-encoding: chunked", 400),
        ("2.2", "x: y\rtransfer-encoding: chunked", 400),
        ("6.3", "transfer_encoding: chunked", "POST /a", 400),
        # A body with two lengths: two servers may disagree on its end.
        ("6.1", "content-length: 5¶transfer-encoding: chunked", 400),
        ("6.1", "transfer-encoding: chunked¶content-length: 5", 400),
        ("6.1", "transfer-encoding: chunked¶content-length: 0", 400),
        ("6.1", "content-length: 15¶transfer-encoding: chunked", 400),
        ("6.1", "content-length: 5¶transfer-encoding: gzip, chunked", 400),
        ("6.1", "content-length: 5¶transfer-encoding: identity", 400),
        ("6.1", "content-length: 5¶transfer-encoding: xchunked", 400),
        ("6.1", "content-length: 5¶transfer-encoding:", 400),
        ("6.1", "content-length: 5¶transfer-encoding: chunked¶transfer-encoding: x", 400),
    ),
    *of(
        "POST /a HTTP/1.1¶host: a¶@GET /smuggled HTTP/1.1¶host: a¶¶",
        ("6.1", "content-length: 5¶transfer-encoding: chunked¶¶0¶¶", 400),
        ("6.1", "content-length: 40¶transfer-encoding: chunked¶¶0¶¶", 400),
        ("6.1", "transfer-encoding: chunked¶content-length: 4¶¶23¶", 400),
        ("6.1", "content-length: 0¶transfer-encoding: x¶¶", 400),
        ("6.1", "content-length: 35¶transfer-encoding: x¶¶", 400),
        ("6.3", "content-length: 35¶content-length: 0¶¶", 400),
        ("6.3", "content-length: 35¶¶", "POST /a GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"),
    ),
    *of(
        "POST /a HTTP/1.0¶@¶¶5¶hello¶0¶¶",
        ("6.1", "transfer-encoding: chunked", 400),
        ("6.1", "transfer-encoding: chunked¶content-length: 5", 400),
        ("6.1", "transfer-encoding: chunked¶connection: keep-alive", 400),
    ),
    *of(
        "POST /a HTTP/1.0¶@¶¶hello",
        ("6.3", "content-length: 5", HELLO, CLOSED),
        ("6.3", "x: y", "POST /a", CLOSED),
    ),
]

CHUNKS: Final = of(
    "POST /a HTTP/1.1¶host: a¶transfer-encoding: chunked¶¶@",
    ("7.1", "2¶he¶3¶llo¶0¶¶", HELLO),
    ("7.1", "0¶¶", "POST /a"),
    ("7.1", "A¶helloworld¶0¶¶", "POST /a helloworld"),
    ("7.1", "a¶helloworld¶0¶¶", "POST /a helloworld"),
    ("7.1", "0005¶hello¶000¶¶", HELLO),
    ("7.1", "4¶¶¶¶5¶hello¶0¶¶", "POST /a \r\n\r\nhello"),
    ("7.1", "2¶¶¶0¶¶", "POST /a \r\n"),
    ("7.1.1", "5;x¶hello¶0;y=z¶¶", HELLO),
    ("7.1.1", '5;x="y"¶hello¶0¶¶', HELLO),
    ("7.1.1", "5;x=\r¶hello¶0¶¶", 400),
    ("7.1.1", "5;x\n¶hello¶0¶¶", 400),
    ("7.1.1", "5;\nhello¶0¶¶", 400),
    ("7.1.1", "5;x=\0¶hello¶0¶¶", 400),
    *(
        ("7.1", f"{bad}¶hello¶0¶¶", 400)
        for bad in ("g", "5g", "-5", "+5", "0x5", " 5", "5 ", "5\t", "5,", "5_", "\xb2")
    ),
    *(("7.1", f"{bad}¶hello¶0¶¶", 400) for bad in ("", ";x", "5\0", "10000000000000005", "fffffffffffffffff")),
    ("7.1", "5\nhello¶0¶¶", 400),
    ("7.1", "5\rhello¶0¶¶", 400),
    ("7.1", "5¶hello\n0¶¶", 400),
    ("7.1", "5¶hello\r0¶¶", 400),
    ("7.1", "5¶hello0¶¶", 400),
    ("7.1", "3¶hello¶0¶¶", 400),
    ("7.1", "7¶hello¶0¶¶", 400),
    ("7.1", "5¶hello¶0\n\n", 400),
    ("7.1", "5¶hello¶0¶\n", 400),
    ("7.1", "5¶hello¶0\n¶", 400),
    ("7.1.2", "5¶hello¶0¶x: y¶¶", HELLO),
    ("7.1.2", "5¶hello¶0¶trailer-of-a-body: y¶z:¶¶", HELLO),
    ("#6.5.1", "5¶hello¶0¶host: b¶¶", HELLO),
    ("#6.5.1", "5¶hello¶0¶transfer-encoding: x¶¶", 400),
    ("#6.5.1", "5¶hello¶0¶content-length: 5¶¶", 400),
    ("#6.5.1", "5¶hello¶0¶connection: close¶¶", HELLO),
    ("#6.5.1", "5¶hello¶0¶expect: 100-continue¶¶", HELLO),
    ("7.1.2", "5¶hello¶0¶x¶¶", 400),
    ("7.1.2", "5¶hello¶0¶x : y¶¶", 400),
    ("7.1.2", "5¶hello¶0¶x: y¶ z¶¶", 400),
    ("7.1.2", "5¶hello¶0¶x: \0¶¶", 400),
    ("7.1.2", "5¶hello¶0¶x: y\n¶", 400),
    ("7.1.2", "5¶hello¶0¶x: " + "y" * 100_000 + "¶¶", 431),
    ("7.1.1", "5;" + "x" * 100_000 + "¶hello¶0¶¶", 431),
)

EXPECTS: Final = [
    *of(
        "POST /a HTTP/1.1¶host: a¶content-length: 5¶@¶¶hello",
        ("#10.1.1", "expect: 100-continue", 100, HELLO),
        ("#10.1.1", "Expect: 100-Continue", 100, HELLO),
        ("#10.1.1", "expect: x", HELLO),
    ),
    *of(
        "POST /a HTTP/1.0¶content-length: 5¶@¶¶hello",
        ("#10.1.1", "expect: 100-continue", HELLO, CLOSED),
        ("#10.1.1", "expect: 100-continue¶host: a", HELLO, CLOSED),
    ),
]

CONNECTIONS: Final = [
    *of(
        "GET /a HTTP/1.1¶host: a¶@¶¶",
        ("9.6", "connection: close", A, CLOSED),
        ("9.6", "Connection: Close", A, CLOSED),
        ("9.6", "connection: x, close", A, CLOSED),
        ("9.6", "connection: keep-alive¶connection: close", A, CLOSED),
        ("9.6", "connection: closed", A),
        ("9.3", "connection: keep-alive", A),
        ("9.3", "connection:", A),
        ("#7.8", "connection: upgrade¶upgrade: h2c¶http2-settings: AAMAAABkAAQAAP__", A),
        ("#7.8", "connection: upgrade¶upgrade: x, websocket", A),
        ("#7.8", "connection: upgrade", A),
        ("#7.8", "upgrade: websocket", A),
        ("#7.8", "upgrade: x¶connection: upgrade, close", A, CLOSED),
        # no handshake of a WebSocket
        ("#7.8", "connection: upgrade¶upgrade: websocket", 400),
        ("#7.8", "connection: upgrade¶upgrade: websocket¶sec-websocket-version: 13", 400),
    ),
    *of(
        "@¶connection: upgrade¶upgrade: websocket¶sec-websocket-key: dGhlIHNhbXBsZQ==¶sec-websocket-version: 13¶¶",
        ("#7.8", "GET /a HTTP/1.0¶host: a", A, CLOSED),
        ("#7.8", "GET /a HTTP/1.1", 400),
        ("#7.8", "GET /a HTTP/1.1¶host: a¶host: a", 400),
        ("#7.8", "GET /a RTSP/1.0¶host: a", 400),
    ),
    *of(
        "POST /a HTTP/1.1¶host: a¶connection: upgrade¶upgrade: h2c¶@",
        ("#7.8", "content-length: 5¶¶hello", HELLO),
        ("#7.8", "transfer-encoding: chunked¶¶5¶hello¶0¶¶", HELLO),
        ("#7.8", "content-length: 5¶transfer-encoding: chunked¶¶0¶¶", 400),
        ("#7.8", "transfer-encoding: gzip, chunked¶¶5¶hello¶0¶¶", 501),
    ),
    *of(
        "GET /a HTTP/1.0¶@¶¶",
        ("9.3", "connection: keep-alive", A, CLOSED),
        ("9.3", "connection: close", A, CLOSED),
    ),
]

AHEAD: Final = of(
    "@",
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶¶" * 3, A, A, A),
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶¶" * 40, *[A] * 40),
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶¶¶¶GET /a HTTP/1.1¶host: a¶¶", A, A),
    ("9.3.2", "HEAD /a HTTP/1.1¶host: a¶¶GET /a HTTP/1.1¶host: a¶¶", "HEAD", A),
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶content-length: 5¶¶helloGET /a HTTP/1.1¶host: a¶¶", "GET /a hello", A),
    ("9.3.2", "POST /a HTTP/1.1¶host: a¶content-length: 5¶¶hello¶GET /a HTTP/1.1¶host: a¶¶", HELLO, A),
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶¶GET /a HTTP/1.1¶¶", A, 400),
    ("9.3.2", "GET /a HTTP/1.1¶host: a¶¶GET /a HTTP/1.1¶host: a¶x¶¶", A, 400),
    ("9.6", "GET /a HTTP/1.1¶host: a¶connection: close¶¶GET /a HTTP/1.1¶host: a¶¶", A, CLOSED),
    ("9.3", "GET /a HTTP/1.0¶¶GET /a HTTP/1.0¶¶", A, CLOSED),
    ("9.2", "GET /a HTTP/1.1¶host: a¶¶what is this¶¶", A, 400),
    (
        "9.3.2",
        "POST /a HTTP/1.1¶host: a¶transfer-encoding: chunked¶¶5¶hello¶0¶x: y¶¶GET /a HTTP/1.1¶host: a¶¶",
        HELLO,
        A,
    ),
)

ODD_REQUESTS: Final = [
    *(*LINES, *ENDS_OF_LINES, *TARGETS, *HOSTS, *FIELDS, *LENGTHS, *CODINGS, *CHUNKS, *EXPECTS, *CONNECTIONS, *AHEAD)
]
