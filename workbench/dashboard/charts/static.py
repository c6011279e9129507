"""The scripts, styles and pages of the dashboard: separate files, which their own tools check, read once."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from bokeh.models import CustomJS, CustomJSTickFormatter, CustomJSTransform, InlineStyleSheet

_FOLDER = Path(__file__).parents[1] / "static"
_COMMENT = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.DOTALL | re.MULTILINE)
_CSS_COMMENT = re.compile(r"/\*.*?\*/\n?", re.DOTALL)
_INDENT = re.compile(r"\n +")
_GAP = re.compile(r"(?<=[;{]) +| +(?=})")
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js"\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


@cache
def page(name: str) -> str:
    """A Jinja template for Bokeh's page of a document."""
    return (_FOLDER / "pages" / f"{name}.html").read_text(encoding="utf-8")


@cache
def style(name: str) -> str:
    """The rules of a style sheet, without comments: each model that has the sheet takes it to the page."""
    text = (_FOLDER / "styles" / f"{name}.css").read_text(encoding="utf-8")
    return _GAP.sub("", _INDENT.sub(" ", _CSS_COMMENT.sub("", text)))


def sheet(*names: str) -> InlineStyleSheet:
    """These style sheets as one, for the models of a view; the rules of the last one win."""
    return InlineStyleSheet(css="\n".join(map(style, names)))


@cache
def script(name: str) -> str:
    """A script with all of its imports, as text whose functions can be called by code that follows it.

    (A real module would have to be loaded from a URL, which the policy of a served page forbids.)
    """
    return "\n".join(_modules(name, {}).values())


def callback(function: str, **args: Any) -> CustomJS:
    """A callback on the page: a function of ``callbacks.js``, called with `args` and the callback's context."""
    return CustomJS(args=args, code=f"{_alone('callbacks', function)}\n{called(function, args)}")


def whole_callback(module: str, function: str, **args: Any) -> CustomJS:
    """A callback on the page as `callback` makes it, from a module whose functions need each other."""
    return CustomJS(args=args, code=f"{script(module)}\n{called(function, args)}")


def called(function: str, args: Any) -> str:
    """JavaScript that calls a function with the arguments of a CustomJS by name."""
    return f"{function}({{{', '.join(args)}}}, {{object: cb_obj, data: cb_data, context: cb_context}})"


def ticks(function: str, **args: Any) -> CustomJSTickFormatter:
    """The formatter of an axis's ticks or a slider's value: a function of ``ticks.js``."""
    return CustomJSTickFormatter(
        args=args, code=f"{_alone('ticks', function)}\nreturn {function}(tick, {{{', '.join(args)}}})"
    )


def rewritten(module: str, function: str, **args: Any) -> CustomJSTransform:
    """What the page makes of a column of texts: a function of a module, called with them and `args`."""
    return CustomJSTransform(args=args, v_func=f"{script(module)}\nreturn {function}(xs, {{{', '.join(args)}}})")


@cache
def _alone(module: str, function: str) -> str:
    """One function of a module without the others; functions are separated by blank lines."""
    found = re.search(rf"^const {function} = .*?(?=^\n|\Z)", script(module), re.DOTALL | re.MULTILINE)
    if found is None:
        raise KeyError(f"{module}.js has no function {function}")
    return found[0]


def _modules(name: str, found: dict[str, str]) -> dict[str, str]:
    """The imports of a module, then the module itself."""
    text = (_FOLDER / "scripts" / f"{name}.js").read_text(encoding="utf-8")
    for needed in _IMPORT.findall(text):
        if needed not in found:
            _modules(needed, found)
    found[name] = _EXPORT.sub("", _IMPORT.sub("", _COMMENT.sub("", text)))
    return found
