"""UNNEST, LATERAL TABLE and LATERAL VIEW, compared with DuckDB; and after a restore at another parallelism."""

from __future__ import annotations

from random import Random

import duckdb
import pyarrow as pa
import pytest
from rescaled import rescaled
from sql_queries import counted

import workbench as wb
from workbench.errors import QueryError

SECOND = 1_000_000


def posts(count: int = 300) -> pa.Table:
    """Posts with tags, scores by judge, and parts, each of which may be missing or empty."""
    random = Random(5)

    def some(make: object) -> list[object]:
        assert callable(make)
        drawn = [random.randint(-1, 3) for _ in range(count)]
        return [None if n < 0 else [make(random) for _ in range(n)] for n in drawn]

    part = pa.struct([("kind", pa.string()), ("size", pa.int64())])
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "author": [random.choice("abc") for _ in range(count)],
            "tags": pa.array(some(lambda r: r.choice(["x", "y", "z", None])), pa.list_(pa.string())),
            "parts": pa.array(some(lambda r: r.choice([None, {"kind": "k", "size": r.randint(0, 9)}])), pa.list_(part)),
            "scores": pa.array(
                [[("j1", at), ("j2", at % 7)][: at % 3] for at in range(count)], pa.map_(pa.string(), pa.int64())
            ),
            "text": [
                " ".join(random.choice(["red", "green", "blue"]) for _ in range(at % 4 + 1)) for at in range(count)
            ],
            "ts": pa.array([at * SECOND for at in range(count)], pa.timestamp("us")),
        }
    )


def stream(rate: float | None = None) -> wb.Stream:
    return wb.Stream.from_table(posts(), event_time="ts", out_of_orderness="5s", rate=rate)


CASES = {
    "cross join": (
        "SELECT id, tag FROM post CROSS JOIN UNNEST(tags) AS t (tag)",
        "SELECT id, unnest(tags) FROM post",
    ),
    "comma, alias": (
        "SELECT p.id, t.tag FROM post AS p, UNNEST(p.tags) AS t (tag) WHERE t.tag <> 'x' AND p.id > 10",
        "SELECT id, tag FROM (SELECT id, unnest(tags) AS tag FROM post) WHERE tag <> 'x' AND id > 10",
    ),
    "left join": (
        "SELECT id, tag FROM post LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE",
        "SELECT id, tag FROM post LEFT JOIN LATERAL (SELECT unnest(tags) AS tag) ON TRUE",
    ),
    "ordinality": (
        "SELECT id, tag, n FROM post CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, n)",
        "SELECT id, unnest(tags), generate_subscripts(tags, 1)::INT FROM post",
    ),
    "structs": (
        "SELECT id, kind, size FROM post CROSS JOIN UNNEST(parts)",
        "SELECT id, p.kind, p.size FROM (SELECT id, unnest(parts) AS p FROM post)",
    ),
    "maps": (
        "SELECT id, judge, score FROM post INNER JOIN UNNEST(scores) AS s (judge, score) ON score > 3",
        "SELECT id, e.key, e.value FROM (SELECT id, unnest(map_entries(scores)) AS e FROM post) WHERE e.value > 3",
    ),
    "words in groups": (
        "SELECT word, COUNT(*) FROM post, LATERAL TABLE(EXPLODE(SPLIT(text, ' '))) AS t (word) GROUP BY word",
        "SELECT word, count(*) FROM (SELECT unnest(string_split(text, ' ')) AS word FROM post) GROUP BY word",
    ),
    "windows": (
        """SELECT window_end, tag, COUNT(*) FROM TABLE(TUMBLE(TABLE tagged, DESCRIPTOR(ts), INTERVAL '20' SECOND))
           GROUP BY tag, window_start, window_end""",
        """SELECT make_timestamp((epoch_us(ts) // 20000000 + 1) * 20000000), tag, count(*)
           FROM (SELECT ts, unnest(tags) AS tag FROM post) GROUP BY ALL""",
    ),
    "lateral view": (
        "SELECT id, place, tag FROM post LATERAL VIEW OUTER POSEXPLODE(tags) t AS place, tag",
        """SELECT id, place, tag FROM post LEFT JOIN LATERAL
           (SELECT unnest(tags) AS tag, generate_subscripts(tags, 1)::INT - 1 AS place) ON TRUE""",
    ),
    "two lists": (
        "SELECT id, tag, size FROM post CROSS JOIN UNNEST(tags) AS t (tag) CROSS JOIN UNNEST(parts) AS p (kind, size)",
        """SELECT id, tag, p.size FROM (SELECT id, tag, unnest(parts) AS p
           FROM (SELECT id, parts, unnest(tags) AS tag FROM post))""",
    ),
    "of a changelog": (
        """SELECT author, word FROM (SELECT author, MAX(text) AS longest FROM post GROUP BY author)
           CROSS JOIN UNNEST(SPLIT(longest, '[ ]')) AS t (word)""",
        """SELECT author, unnest(string_split(longest, ' '))
           FROM (SELECT author, max(text) AS longest FROM post GROUP BY ALL)""",
    ),
}
TAGGED = "CREATE TEMPORARY VIEW tagged AS SELECT ts, tag FROM post CROSS JOIN UNNEST(tags) AS t (tag); "


def expected(query: str) -> object:
    with duckdb.connect() as connection:
        connection.register("post", posts())
        return counted(connection.execute(query).fetchall())


def found(job: wb.types.Job) -> object:
    assert job.wait("60s") == "FINISHED"
    return counted([tuple(row.values()) for row in job.table("rows").to_pylist()])


@pytest.mark.parametrize("name", CASES)
def test_the_rows_are_those_of_duckdb(name: str) -> None:
    query, same = CASES[name]
    rows = expected(same)
    for parallelism in (1, 3):
        planned = wb.sql(TAGGED + query if "tagged" in query else query, post=stream())
        assert found(planned.sink_to(wb.TableSink("rows")).run("unnest", parallelism=parallelism)) == rows


def test_a_query_continues_at_another_parallelism() -> None:
    query, same = CASES["words in groups"]
    job = rescaled(wb.sql(query, post=stream(rate=30)).sink_to(wb.TableSink("rows")), "unnest")
    assert found(job) == expected(same)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        (
            "SELECT 1 FROM post CROSS JOIN UNNEST(author) AS t (a)",
            "author is string, not a list: name a column of lists",
        ),
        ("SELECT 1 FROM post, UNNEST(parts) AS t (a)", "an element has 2 columns, and 1 names are given"),
        ("SELECT 1 FROM post, UNNEST(tags, parts) AS t (a, b, c)", "UNNEST takes one list, not 2"),
        ("SELECT 1 FROM post LEFT JOIN UNNEST(tags) AS t (a) ON a = 'x'", "LEFT JOIN with UNNEST needs ON TRUE"),
        ("SELECT 1 FROM post FULL JOIN UNNEST(tags) AS t (a) ON TRUE", "FULL JOIN with UNNEST is not supported"),
        ("SELECT 1 FROM post, LATERAL (SELECT 1 AS n) AS t (a)", "LATERAL takes UNNEST or EXPLODE of a list"),
        ("SELECT 1 FROM UNNEST(tags) AS t (a)", "UNNEST must follow a stream"),
        ("SELECT b FROM post CROSS JOIN UNNEST(tags) AS t (a)", "unknown column 'b'"),
        ("SELECT a FROM post CROSS JOIN UNNEST(taggs) AS t (a)", "unknown column 'taggs': did you mean 'tags'?"),
        ("SELECT author FROM post CROSS JOIN UNNEST(tags) AS t (author)", "the column 'author' is ambiguous"),
        ("SELECT SPLIT(author, '') AS a FROM post", "an empty pattern has no matches"),
    ],
)
def test_mistakes(query: str, sentence: str) -> None:
    with pytest.raises(QueryError) as caught:
        wb.sql(query, post=stream())
    assert sentence in str(caught.value)
    assert "^" in str(caught.value)
