"""Removes secrets from messages, files and logs: those in URLs, parameters, settings, headers and keys.

Every pass reads a text once, so its time is linear in the length of the text.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "***"

# In the text of a program: a replacement field of an f-string. It begins with a name, because what
# begins with a quote may be the secret, and has no format, which may be a password behind a colon.
_FIELD = r"\{[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^{}\[\]]{0,99}\]|\([^{}()]{0,99}\)){0,9}(?:![rsa])?\}"
_FIELDS = re.compile(rf"{_FIELD}(?::{_FIELD})?|\[user(?:\[:password\]|:password)")  # or the form of a URL
_A_FIELD = re.compile(_FIELD)

_SPACE = re.compile(r"\s")
_SPACED = re.compile(r"[^\n'\"<>@]{0,200}@(?=[\w.\[-])")
"""A password with a space in it."""
_QUERY = re.compile(r"[^@?]{0,200}\?[\w.-]{1,99}=")
_QUOTED_MAX = 1_000
_SCHEME = re.compile(r"(?P<mark>['\"]?)(?:(?P<web>https?|wss?)|[a-z][a-z0-9+.-]{0,15})$", re.IGNORECASE)
"""Only on the web may a path have an @ behind a port."""
_USER_END = re.compile(r"[\s/?#:@]")
_AUTHORITY_END = re.compile(r"[\s/?#]")
_WORD_END = re.compile(r"[\s'\"<>]")
_PORT = re.compile(r"\d+(?:[/?#\s]|$)")
# Not followed by an @: a port as in a sentence, a word or a placeholder for one, or nothing at all.
_NO_PASSWORD = re.compile(rf"(?:\d+|port|<\w{{1,20}}>|%[ds]|{_FIELD})(?:[/?#\s'\"),.;:\]}}>]|$)|[/?#\s'\"),<>]|$", re.I)

_PARAMETER = re.compile(
    r"([?&;][\w.-]{0,64}(?:pass|pwd|secret|token|ticket|key|signature|sig|credential|auth)[\w.-]{0,64}=)"
    rf"(?:(?P<field>{_FIELD})(?=[\s&;#'\"]|$)|\{{[^{{}}\n]*\}}[^\s&;#'\"]*|[^\s&;#'\"]*)",
    re.IGNORECASE,
)

_NAMES = (
    r"(?P<word>password|passwd|passphrase|secret(?:[_.-]?(?:access[_.-]?)?key)?)"
    r"|(?:(?<![A-Za-z])|(?-i:(?<=[a-z0-9])(?=[A-Z])))(?:pwd|pass|token|kerb[_.-]?ticket|credentials?|shared[_.-]?access"
    r"[_.-]?signature|(?:api|access|account|private|storage|session|encryption|signing)[_.-]?key(?:[_.-]?id)?)"
)
# A value in quotes, in the braces of ODBC or of a field, or up to the end of an entry in a list of settings.
_SETTING = re.compile(
    rf"(?P<name>(?:{_NAMES})(?P<quote>['\"]?)(?P<gap>\s{{0,9}})(?P<sign>=(?!=)|:(?![:/]))\s{{0,9}})"
    r"(?!\*\*\*|None\b|null\b)"
    r"(?:[rbfu]{0,2}(?P<mark>['\"])(?P<inner>(?:(?!(?P=mark))[^\\\n]|\\.)*)(?P=mark)"
    r"|(?P<value>\{[^{}\n]*\}(?=[\s&;,'\")#]|$)|['\"]?[^\s&;'\"]+))",
    re.IGNORECASE,
)
_EXPRESSION = re.compile(
    r"[A-Za-z_]\w{0,99}(?:\.\w{1,99}|\[[^\[\]\n]{0,99}\]|\([^()\n]{0,99}\)){0,9}\s{0,9}(?:[,)\]}#\n]|$)"
)
_HEADER = re.compile(
    r"((?:authorization['\"]?\s{0,9}[:=]\s{0,9}['\"]?(?:(?:basic|bearer|digest|negotiate|token)\s{1,9})?"
    r"|\bbearer\s{1,9}(?=[\w.~+/=-]{0,99}?(?:\d|\.\w))))"
    rf"(?:(?P<field>{_FIELD})(?=['\"\s]|$)|[^\s'\",]+)",
    re.IGNORECASE,
)
_KEY = re.compile(r"\b(?:(?:AKIA|ASIA|AROA|AIDA)[0-9A-Z]{16}|gh[pousr]_\w{36,255})\b")
_PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----).*?(-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.DOTALL
)

_ENCODED = re.compile(r"[^\s'\"&;?#<>=]+")
_TWICE = re.compile(r"%(?:25)+(?=[0-9A-Fa-f]{2})")
_NAME = re.compile(r"[\w.-]+")
_WORD = re.compile(r"[^\s'\"]+")


def redacted(text: str, *, code: bool = False) -> str:
    """The text without secrets: users and passwords in URLs; parameters, settings and headers with the names of
    secrets, such as ``password=`` and ``Authorization:``; keys that are known by their form. It makes no difference how
    often they are percent-encoded.

    A name in braces, such as ``{KEY}`` in an f-string, is only a placeholder for a secret, and is kept.

    Args:
        text: of any length.
        code: whether it is the text of a program, in which ``password=given`` names a variable.

    Example:
        >>> redacted("cannot open postgresql://ann:pa55@db.example/flights?sslkey=abc&mode=rw")
        'cannot open postgresql://***@db.example/flights?sslkey=***&mode=rw'
        >>> redacted("cannot connect with host=db user=ann password=pa55")
        'cannot connect with host=db user=ann password=***'
    """
    if "%" in text:
        text = _ENCODED.sub(_encoded_hidden, text)
    return _hidden(text, code=code)


def hidden_places(text: str) -> list[str]:
    """The distinct words of a redacted text in which something is hidden.

    Example:
        >>> hidden_places("wb.savepoints('s3://***@bucket/jobs')")
        ['s3://***@bucket/jobs']
    """
    return list(dict.fromkeys(word for word in _WORD.findall(text) if HIDDEN in word))


def _encoded_hidden(found: re.Match[str]) -> str:
    word = found[0]
    if "%" not in word:
        return word
    decoded = unquote(_TWICE.sub("%", word))
    if found.string.startswith("=", found.end()) and _NAME.fullmatch(decoded):
        return decoded  # the name of a parameter, for the other passes to know
    plain = _hidden(word, code=False)  # in text that is not encoded, only the secret is hidden
    decoded = unquote(_TWICE.sub("%", plain))
    return plain if _hidden(decoded, code=False) == decoded else HIDDEN


def _hidden(text: str, *, code: bool) -> str:
    if ":/" in text:
        text = _without_users(text)
    if "=" in text or ":" in text:
        text = _PARAMETER.sub(_value_hidden, text)
        text = _HEADER.sub(_value_hidden, text)
        text = _SETTING.sub(_place_kept if code else _setting_hidden, text)
    else:
        text = _HEADER.sub(_value_hidden, text)
    if "PRIVATE KEY-----" in text:
        text = _PRIVATE_KEY.sub(rf"\1{HIDDEN}\2", text)
    return _KEY.sub(HIDDEN, text)


def _without_users(text: str) -> str:
    parts: list[str] = []
    taken = run_end = last = 0
    colon = text.find(":/")
    while colon >= 0:
        begin = colon + 2
        if colon >= 2 and _NAME.fullmatch(text, colon - 2, colon):  # a drive has one letter
            begin += text.startswith("/", begin)  # a path that was made from a URL has lost one slash
            if begin > run_end:
                run_end = _end(_SPACE, text, begin)
                last = text.rfind("@", begin, run_end)
            scheme = _SCHEME.search(text, max(colon - 20, 0), colon)
            end = _user_end(text, begin, last, scheme)
            if end is not None:
                if not _FIELDS.fullmatch(text, begin, end):
                    parts += (text[taken:begin], HIDDEN)
                    taken = end
                begin = end
        colon = text.find(":/", begin)
    return "".join((*parts, text[taken:]))


def _user_end(text: str, begin: int, last: int, scheme: re.Match[str] | None) -> int | None:
    """The end of the user and password of a URL; None: it has neither.

    Args:
        text: with a URL.
        begin: the position after the slashes of its scheme.
        last: the position of the last @ before the next space; less than `begin`: there is none.
        scheme: of the URL, with a quotation mark before it.
    """
    user_end = _end(_USER_END, text, begin)
    has_colon = text.startswith(":", user_end)
    if has_colon and scheme is not None and scheme["mark"]:  # as in a program
        close = text.find(scheme["mark"], user_end, user_end + _QUOTED_MAX)
        last = max(last, text.rfind("@", user_end, close))
    has_port = _PORT.match(text, user_end + 1) and (
        scheme is None or scheme["web"] or _QUERY.match(text, user_end, max(last, user_end))
    )
    if has_colon and last > user_end and not has_port:
        return last  # what follows the colon may be a password with any characters in it
    is_open = has_colon and text[begin] != "[" and not _PORT.match(text, user_end + 1)
    if is_open and (spaced := _SPACED.match(text, user_end + 1)):
        return spaced.end() - 1
    authority_end = _end(_AUTHORITY_END, text, begin)
    at = text.rfind("@", begin, authority_end)
    if at >= 0:
        return at
    if has_colon and text[begin] != "[" and not _NO_PASSWORD.match(text, user_end + 1):
        return _end(_WORD_END, text, user_end)  # a host has no word after a colon, so the host is missing
    return None


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    """The first position of `pattern`, or the end of the text."""
    found = pattern.search(text, begin)
    return len(text) if found is None else found.start()


def _value_hidden(found: re.Match[str]) -> str:
    return found[0] if found["field"] else found[1] + HIDDEN


def _setting_hidden(found: re.Match[str]) -> str:
    inner, value = found["inner"], found["value"]
    if inner is not None:
        if not inner or _A_FIELD.fullmatch(inner):
            return found[0]
        return f"{found[0][: found.start('inner') - found.start()]}{HIDDEN}{found['mark']}"
    if not found["quote"]:  # as in a list of settings; in a sentence a colon may come before any word
        if found["sign"] == "=" and (found["gap"] or found["name"][-1] != "="):
            return found[0]
        if found["sign"] == ":" and (found["word"] is None or not any(map(str.isdigit, value))):
            return found[0]
    return found[0] if _A_FIELD.fullmatch(value) else found["name"] + HIDDEN


def _place_kept(found: re.Match[str]) -> str:
    if found["value"] is not None and _EXPRESSION.match(found.string, found.start("value")):
        return found[0]
    return _setting_hidden(found)
