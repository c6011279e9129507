"""Random expressions, in Spark's words and in DuckDB's."""

from __future__ import annotations

from .draft import Draft
from .drawn import Drawn


def condition(draft: Draft, drawn: Drawn) -> tuple[str, str]:
    """A condition in Spark's words and in DuckDB's."""
    chance = draft.chance
    name = chance.choice(list(drawn.kinds))
    kind = drawn.kinds[name]
    null = f"{name} IS {chance.choice(('', 'NOT '))}NULL"
    if kind == "int":
        other = chance.choice(drawn.of("int"))
        texts = [f"{name} > {chance.randint(0, 6)}", f"{name} % 3 = 0", f"{name} <= {other}", f"{name} IN (1, 2, 5)"]
        texts += [f"{name} BETWEEN 1 AND 9", f"NOT ({name} = {other} AND {name} > 2)", f"coalesce({name}, 3) < 4"]
    elif kind == "float":
        texts = [f"{name} > {chance.randint(-3, 5)}.5", f"{name} < 2", f"{name} > 0 OR {name} IS NULL"]
    elif kind == "str":
        texts = [f"{name} = 'x'", f"length({name}) > 1", f"{name} LIKE '%y'", f"{name} <> 'k1'"]
        texts += [f"{name} IN ('p', 'q')", f"{name} > 'x'"]
    elif kind == "bool":
        texts = [name, f"NOT {name}", f"{name} OR {name} IS NULL"]
    else:
        texts = [null]
    spark = chance.choice([*texts, null])
    return spark, f"({spark})"


def value(draft: Draft, drawn: Drawn) -> tuple[str, str, str]:
    """An expression in Spark's words and in DuckDB's, and its kind."""
    chance = draft.chance
    found: list[tuple[str, str, str]] = [("1", "1", "int"), ("'q'", "'q'", "str")]
    for name in drawn.of("int"):
        other = chance.choice(drawn.of("int"))
        found += [(f"{name} + {other}", f"{name} + {other}", "int"), (f"{name} DIV 3", f"{name} // 3", "int")]
        found += [
            (f"abs({name}) % 5", f"abs({name}) % 5", "int"),
            (f"{name} * 0.5D", f"{name} * 0.5::DOUBLE", "float"),
        ]
        case = f"CASE WHEN {name} > 2 THEN 'many' WHEN {name} < 0 THEN NULL ELSE 'few' END"
        found += [(case, case, "str"), (f"coalesce({name}, 7)", f"coalesce({name}, 7)", "int")]
    for name in drawn.of("float"):
        found += [(f"{name} * 2 - 1", f"{name} * 2 - 1", "float"), (f"-{name}", f"-{name}", "float")]
    for name in drawn.of("str"):
        found += [(f"length({name})", f"length({name})", "int"), (f"upper({name})", f"upper({name})", "str")]
        found += [(f"concat({name}, '!')", f"{name} || '!'", "str"), (name, name, "str")]
    for name in drawn.of("bool"):
        found.append((f"NOT {name}", f"NOT {name}", "bool"))
    return chance.choice(found)
