"""Finds what a learner's program remembers outside of state, and empties it as the end of a process would.

A process that dies takes its global variables, class attributes and closures with it. The notebook's kernel goes on
living, so a check resets them: before each run, and when a task fails.
"""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from workbench.expressions import Expression

_CONTAINERS = (list, dict, set, deque, bytearray)
_ELEMENTS_MAX = 1_000
"""Elements of a container that are searched for functions and objects."""
_DEEPEST = 40


class _Space:
    """Some variables with what they held at first.

    Args:
        told: the name of a variable, with its place, as a format.
        holder: a namespace, a class, or a cell.
        names: the variables; None: all of the namespace, also those that appear later.
    """

    def __init__(self, told: str, holder: Any, names: Iterable[str] | None = None) -> None:
        self.told = told
        self.holder = holder
        self.names = None if names is None else tuple(names)
        self.first = self.now()
        self.contents = {name: _copied(value) for name, value in self.first.items()}

    def held(self) -> dict[str, Any]:
        """The variables that exist."""
        if isinstance(self.holder, CellType):
            assert self.names is not None
            try:
                return {self.names[0]: self.holder.cell_contents}
            except ValueError:  # not assigned yet
                return {}
        inside = vars(self.holder) if isinstance(self.holder, type) else self.holder
        names = list(inside) if self.names is None else [name for name in self.names if name in inside]
        return {name: inside[name] for name in names if not (name.startswith("__") and name.endswith("__"))}

    def now(self) -> dict[str, Any]:
        """The variables that exist, without functions and classes."""
        return {name: value for name, value in self.held().items() if not isinstance(value, _CODE)}

    def changed(self) -> list[str]:
        now = self.now()
        return [
            self.told.format(name)
            for name in {**self.first, **now}
            if name not in now or name not in self.first or not _same(now[name], self.contents[name])
        ]

    def reset(self) -> None:
        for name, value in self.first.items():
            if isinstance(value, _CONTAINERS):
                _refill(value, _copied(self.contents[name]))
        now = self.now()
        for name in {**self.first, **now}:
            if name not in self.first:
                self._drop(name)
            elif name not in now or now[name] is not self.first[name]:
                self._put(name, self.first[name])

    def _put(self, name: str, value: Any) -> None:
        if isinstance(self.holder, CellType):
            self.holder.cell_contents = value
        elif isinstance(self.holder, type):
            setattr(self.holder, name, value)
        else:
            self.holder[name] = value

    def _drop(self, name: str) -> None:
        if isinstance(self.holder, CellType):
            del self.holder.cell_contents
        elif isinstance(self.holder, type):
            delattr(self.holder, name)
        else:
            del self.holder[name]


class Memory:
    """The variables outside of state that a program can reach: global ones, attributes of its classes and objects,
    variables around its functions, and defaults of arguments.

    Args:
        roots: functions, classes and objects of the program.

    Example:
        >>> seen = []
        >>> def count(record):
        ...     seen.append(record)
        >>> memory = Memory([count])
        >>> count(1)
        >>> memory.changed(), memory.reset(), seen
        (['the global variable `seen`'], None, [])
    """

    def __init__(self, roots: Iterable[object] = ()) -> None:
        self._spaces: list[_Space] = []
        self._caches: list[Any] = []
        self._seen: dict[int, object] = {}  # keeps what was seen, so that no other object gets its id
        self.add(roots)

    def add(self, roots: Iterable[object]) -> None:
        """Search further parts of the program; what was found before keeps its first values."""
        for root in roots:
            self._visit(root, 0)

    def changed(self) -> list[str]:
        """What has changed since it was found, in words."""
        return list(dict.fromkeys(told for space in self._spaces for told in space.changed()))

    def reset(self) -> None:
        """Give everything its first value again."""
        for space in self._spaces:
            space.reset()
        for cache in self._caches:
            cache.cache_clear()

    def values(self) -> list[object]:
        """The present values."""
        return [value for space in self._spaces for value in space.now().values()]

    # the search --------------------------------------------------------------------------------------------------

    def _visit(self, it: Any, depth: int) -> None:
        if id(it) in self._seen or depth > _DEEPEST or isinstance(it, _PLAIN):
            return
        self._seen[id(it)] = it
        if isinstance(it, FunctionType):
            self._of_function(it, depth)
        elif isinstance(it, MethodType):
            self._both(depth, it.__func__, it.__self__)
        elif isinstance(it, partial):
            self._both(depth, it.func, it.args, it.keywords)
        elif isinstance(it, staticmethod | classmethod):
            self._visit(it.__func__, depth + 1)
        elif isinstance(it, property):
            self._both(depth, it.fget, it.fset)
        elif isinstance(it, type):
            if _is_own(it.__module__):
                self._of_class(it, depth)
        elif isinstance(it, list | tuple | set | frozenset | deque):
            self._both(depth, *list(it)[:_ELEMENTS_MAX])
        elif isinstance(it, dict | MappingProxyType):
            self._both(depth, *list(it.values())[:_ELEMENTS_MAX])
        elif hasattr(it, "cache_clear") and hasattr(it, "__wrapped__"):
            self._caches.append(it)
            self._visit(it.__wrapped__, depth + 1)
        elif _is_own(type(it).__module__) or type(it).__name__ == "SimpleNamespace":
            self._of_object(it, depth)
        elif is_dataclass(it):
            self._both(depth, *(getattr(it, field.name, None) for field in fields(it)))

    def _both(self, depth: int, *parts: object) -> None:
        for part in parts:
            self._visit(part, depth + 1)

    def _of_function(self, function: FunctionType, depth: int) -> None:
        name, names = function.__name__, _names(function.__code__)
        self._space("the global variable `{}`", function.__globals__, depth, names - vars(builtins).keys())
        for variable in names:
            module = function.__globals__.get(variable)
            if isinstance(module, ModuleType) and _is_own(module.__name__):
                self._space(f"the variable `{{}}` of the module `{variable}`", vars(module), depth, names)
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._space(f"the variable `{{}}` around `{name}`", cell, depth, [variable])
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        held = {str(index): value for index, value in enumerate(defaults)}
        self._space(f"a default argument of `{name}`", held, depth)
        self._space(f"the attribute `{{}}` of the function `{name}`", vars(function), depth)

    def _of_class(self, kind: type, depth: int) -> None:
        self._both(depth, *kind.__bases__, *vars(kind).values())
        self._space(f"the class attribute `{kind.__name__}.{{}}`", kind, depth)

    def _of_object(self, it: Any, depth: int) -> None:
        self._visit(type(it), depth + 1)
        self._space(f"the attribute `{{}}` of a `{type(it).__name__}`", getattr(it, "__dict__", {}), depth)
        for slots in (vars(kind).get("__slots__", ()) for kind in type(it).__mro__):
            self._both(depth, *(getattr(it, name, None) for name in ([slots] if isinstance(slots, str) else slots)))

    def _space(self, told: str, holder: Any, depth: int, names: Iterable[str] | None = None) -> None:
        space = _Space(told, holder, names)
        self._spaces.append(space)
        self._both(depth, *space.held().values())


_CODE = (FunctionType, MethodType, BuiltinFunctionType, type, ModuleType, property, staticmethod, classmethod)
_PLAIN = (str, bytes, int, float, complex, type(None), ModuleType, Expression)


def _is_own(module: str | None) -> bool:
    """Whether a module is the learner's, and not of Python or of a package."""
    root = (module or "").partition(".")[0]
    if root == "__main__":
        return True
    if not root or root == "workbench" or root in sys.stdlib_module_names:
        return False
    return "site-packages" not in (getattr(sys.modules.get(root), "__file__", None) or "")


def _names(code: CodeType) -> set[str]:
    """The names of global variables and attributes in a function, and in the functions inside it."""
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _copied(value: Any) -> Any:
    """A copy of a container and of the containers in it; of other values, themselves."""
    for kind in _REBUILT:
        if isinstance(value, kind):
            return kind(map(_copied, value))
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    return bytearray(value) if isinstance(value, bytearray) else value


_REBUILT: tuple[Any, ...] = (list, set, frozenset, deque, tuple)


def _same(now: Any, content: Any) -> bool:
    """Whether a value is still what was copied."""
    if now is content:
        return True
    if isinstance(content, dict):
        return (
            isinstance(now, dict) and now.keys() == content.keys() and all(_same(now[key], content[key]) for key in now)
        )
    if isinstance(content, list | deque | tuple):
        return isinstance(now, type(content)) and len(now) == len(content) and all(map(_same, now, content))
    return isinstance(content, _COMPARED) and isinstance(now, type(content)) and bool(now == content)


_COMPARED = (str, bytes, int, float, set, frozenset, bytearray)


def _refill(container: Any, content: Any) -> None:
    """Put elements back into a container that others refer to."""
    container.clear()
    (container.update if isinstance(container, dict | set) else container.extend)(content)
