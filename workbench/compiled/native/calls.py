"""Writes the C functions through which Python calls kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

GLUE = Path(__file__).with_name("glue.c")
_NUMPY = {"i": "NPY_INT", "u": "NPY_UINT", "f": "NPY_FLOAT"}


@dataclass(frozen=True, slots=True)
class Value:
    """The type of an argument or of a returned value.

    Attributes:
        kind: numpy's letter: ``i``, ``u`` or ``f``, and ``b`` for a boolean.
        width: bytes of a value.
        dimensions: of an array; 0: a single value.
        filled: whether the kernel writes to the array.
    """

    kind: str
    width: int
    dimensions: int = 0
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """How a kernel is called.

    Attributes:
        name: of the kernel.
        takes: its arguments.
        returns: its values.
        few: rows of the first argument up to which it keeps the interpreter lock.
    """

    name: str
    takes: tuple[Value, ...]
    returns: tuple[Value, ...]
    few: int


def source(signatures: Sequence[Signature], levels: Iterable[str], stamp: str) -> str:
    """The C source of the extension module with the kernels of all levels, whose symbols are ``symbol(name, level)``.

    Args:
        signatures: of the kernels.
        levels: names of levels of instructions, the fastest one last.
        stamp: of the kernels' sources.
    """
    levels = tuple(levels)
    names = ", ".join(f'"{level}"' for level in levels)
    entries = [
        f'{{{{"{own.name}", (PyCFunction)(void *)call_{own.name}, METH_FASTCALL, NULL}}, "{level}", '
        f"(void *){symbol(own.name, level)}}},"
        for level in levels
        for own in signatures
    ]
    declared = [f"extern int {symbol(own.name, level)}(void);" for level in levels for own in signatures]
    return "\n".join(
        [
            GLUE.read_text(encoding="utf-8"),
            *declared,
            *(_call(own) for own in signatures),
            f"static const char *const LEVELS[] = {{{names}, NULL}};",
            "static Kernel KERNELS[] = {",
            *entries,
            "{{NULL, NULL, 0, NULL}, NULL, NULL}};",
            _MODULE.replace("@stamp@", stamp),
        ]
    )


def symbol(name: str, level: str) -> str:
    """The symbol of a kernel's code for one level."""
    return f"workbench_{name}_{level.replace('-', '_')}"


_MODULE = """\
static PyObject *levels(PyObject *self, PyObject *nothing) { return levels_of(LEVELS); }

static PyObject *kernels(PyObject *self, PyObject *level) { return kernels_of(KERNELS, level); }

static PyMethodDef FUNCTIONS[] = {
    {"levels", levels, METH_NOARGS, "The levels of instructions that this processor has, the fastest one last."},
    {"kernels", kernels, METH_O, "The kernels of a level by name."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "ready", NULL, -1, FUNCTIONS};

PyMODINIT_FUNC PyInit_ready(void)
{
    import_array();
    PyObject *module = PyModule_Create(&MODULE);
    if (module != NULL && PyModule_AddStringConstant(module, "STAMP", "@stamp@") < 0)
        Py_CLEAR(module);
    return module;
}
"""


def _call(own: Signature) -> str:
    unpacked, passed, kinds = [], [], []
    for at, value in enumerate(own.takes):
        if value.dimensions:
            unpacked.append(
                f'    Array a{at};\n    if (!array("{own.name}", {at}, args[{at}], {value.dimensions}, '
                f"'{value.kind}', {value.width}, {int(value.filled)}, &a{at}))\n        return NULL;"
            )
            passed.append(f"ARRAY_{value.dimensions}(a{at})")
            kinds.append(f"TAKES_{value.dimensions}")
        else:
            unpacked.append(f"    int64_t a{at};\n    if (!integer(args[{at}], &a{at}))\n        return NULL;")
            passed.append(f"a{at}")
            kinds.append("int64_t")
    frees = f"a0.items > {own.few}" if own.few else "1"
    results = _results(own.returns)
    return f"""
static PyObject *call_{own.name}(PyObject *self, PyObject *const *args, Py_ssize_t count)
{{
    if (!counted("{own.name}", count, {len(own.takes)}))
        return NULL;
{chr(10).join(unpacked)}
    {results}
    void *raised = NULL;
    int (*code)(void *, void *, {", ".join(kinds)}) = PyCapsule_GetPointer(self, NULL);
    PyThreadState *state = {frees} ? PyEval_SaveThread() : NULL;
    int status = code(&result, &raised, {", ".join(passed)});
    if (state != NULL)
        PyEval_RestoreThread(state);
    if (status != 0)
        return failed("{own.name}");
    {_packed(own.returns)}
}}"""


def _results(returns: Sequence[Value]) -> str:
    """Declares where the kernel stores its results."""
    if not returns:
        return "void *result;"
    fields = " ".join(f"{_c_type(value)} v{at};" for at, value in enumerate(returns))
    return f"struct {{ {fields} }} result;"


def _c_type(value: Value) -> str:
    if value.dimensions:
        return "Returned"
    return "int8_t" if value.kind == "b" else "int64_t"


def _packed(returns: Sequence[Value]) -> str:
    """Returns them to Python."""
    if not returns:
        return "return Py_NewRef(Py_None);"
    packed = [_packed_one(value, f"result.v{at}") for at, value in enumerate(returns)]
    if len(packed) == 1:
        return f"return {packed[0]};"
    return f"PyObject *values[] = {{{', '.join(packed)}}};\n    return packed({len(packed)}, values);"


def _packed_one(value: Value, place: str) -> str:
    if value.dimensions:
        return f"packed_array(&{place}, {_NUMPY[value.kind]}{8 * value.width})"
    return f"PyBool_FromLong({place})" if value.kind == "b" else f"PyLong_FromLongLong({place})"
