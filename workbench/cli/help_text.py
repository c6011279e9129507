"""Layout of a command's help: no line is wider than the terminal."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from textwrap import wrap


class Help(argparse.HelpFormatter):
    """Wraps paragraphs; a line that begins with spaces is a list entry and keeps its own line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(_filled(text.splitlines(), width))

    def _format_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None,
    ) -> str:
        text = super()._format_usage(usage, actions, groups, prefix)
        if all(len(line) <= self._width for line in text.splitlines()):
            return text
        whole = re.sub(r"\[[^\]]*\]", lambda option: option[0].replace(" ", "\0"), " ".join(text.split()))
        lines = wrap(whole, self._width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        return "\n".join(lines).replace("\0", " ") + "\n\n"


def _filled(lines: Iterable[str], width: int) -> Iterator[str]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip() and not line.startswith(" "):
            paragraph.append(line)
            continue
        if paragraph:
            yield from wrap(" ".join(paragraph), width)
            paragraph = []
        about = max((gap.end() for gap in re.finditer(r" {2,}", line)), default=0)
        yield from wrap(line, width, subsequent_indent=" " * min(about, width // 2)) or [""]
