"""The error of a connector that breaks its contract, and the comparison of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from workbench.errors import WorkbenchError
from workbench.raised import shown

_SHOWN = 3


class ContractError(WorkbenchError):
    """A source or a sink breaks its contract: the message names the moment and the rows.

    Example:
        >>> str(ContractError("after a crash at record 7, 1 row is missing (8)"))
        'after a crash at record 7, 1 row is missing (8)'
    """


def compare(found: Iterable[object], expected: Iterable[object], moment: str) -> None:
    """Compare rows as multisets.

    Raises:
        ContractError: rows are missing, or there are more.

    Example:
        >>> compare([1, 2, 2], [2, 1, 2], "at the end")
        >>> compare([1, 2, 2], [1, 2, 3], "at the end")
        Traceback (most recent call last):
        ...
        workbench.lab.connectors.contract_error.ContractError: at the end 1 row is missing (3) and 1 row is too many (2)
    """
    has, wants = Counter(found), Counter(expected)
    missing, more = wants - has, has - wants
    parts = [f"{_rows(missing)} missing {_some(missing)}"] if missing else []
    if more:
        parts.append(f"{_rows(more)} too many {_some(more)}")
    if parts:
        raise ContractError(f"{moment} {' and '.join(parts)}")


def _rows(counts: Counter[object]) -> str:
    return "1 row is" if (number := counts.total()) == 1 else f"{number:,} rows are"


def _some(counts: Counter[object]) -> str:
    more = ", ..." if len(counts) > _SHOWN else ""
    return f"({', '.join(shown(row, 80) for row in list(counts)[:_SHOWN])}{more})"
