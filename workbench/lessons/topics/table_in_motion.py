"""Lesson 1: a stream is a table in motion (F1-1 to F1-5, F2-1, F2-2)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Exercise
from workbench.lessons.exercises.pipelines import PipelineCheck
from workbench.lessons.exercises.plan import LessonPlan
from workbench.lessons.exercises.question import Choice, Number, Option

WORDS = ("the", "new", "stream", "of", "data", "is", "here", "a#b", "fast")
TAGS = ("#flink", "#spark", "#Storm", "#beam", "#x")


def posts(chance: Random, rows: int) -> tuple[pa.Table]:
    """Short texts, some without a tag, some with the same tag twice."""
    texts = []
    for _ in range(rows):
        words = [*chance.choices(WORDS, k=chance.randrange(4)), *chance.choices(TAGS, k=chance.choice((0, 1, 1, 2, 3)))]
        if "#flink" in words and chance.random() < 0.5:
            words.append("#flink")
        chance.shuffle(words)
        texts.append(" ".join(words))
    return (pa.table({"text": texts}),)


def tag_counts(table: pa.Table) -> list[dict[str, Any]]:
    """How often each tag occurs in the texts."""
    return _counted(word for text in table["text"].to_pylist() for word in text.split() if word.startswith("#"))


def _posts_with_tag(table: pa.Table) -> list[dict[str, Any]]:
    return _counted(tag for text in table["text"].to_pylist() for tag in {w for w in text.split() if w[0] == "#"})


def _first_tags(table: pa.Table) -> list[dict[str, Any]]:
    found = ([w for w in text.split() if w[0] == "#"] for text in table["text"].to_pylist())
    return _counted(tags[0] for tags in found if tags)


def _all_words(table: pa.Table) -> list[dict[str, Any]]:
    return _counted(word for text in table["text"].to_pylist() for word in text.split())


def _with_inner(table: pa.Table) -> list[dict[str, Any]]:
    return _counted(word for text in table["text"].to_pylist() for word in text.split() if "#" in word)


def _lower(table: pa.Table) -> list[dict[str, Any]]:
    return _counted(w.lower() for text in table["text"].to_pylist() for w in text.split() if w[0] == "#")


def _bare(table: pa.Table) -> list[dict[str, Any]]:
    return [{**row, "tag": row["tag"][1:]} for row in tag_counts(table)]


def _counted(tags: Any) -> list[dict[str, Any]]:
    return [{"tag": tag, "n": n} for tag, n in Counter(tags).items()]


LESSON = LessonPlan(
    number="01",
    title="A table in motion",
    promise="Afterwards you can say what a stream and a dataflow graph are, and what runs when you start one.",
    questions=(
        Choice(
            "same",
            "The same query counts records per key over a table, and over the same rows as a stream. When the stream "
            "has ended, how do its last counts of each key compare with the table's?",
            (
                Option("They are the same.", lambda equal: equal is True),
                Option("They are smaller: a stream sees each record only once.", lambda equal: equal == "smaller"),
                Option("They depend on the order of the rows.", lambda equal: equal is False),
            ),
            "A bounded table is a stream that ends. Counting does not depend on the order, so both agree.",
        ),
        Number(
            "channels",
            "Two parallel sources send to two parallel counts, by key. How many channels connect them?",
            "channels",
            "Every sender may have a record for every receiver: 2 x 2. At a parallelism of 100, there are 10,000.",
            factor=1.0,
        ),
        Choice(
            "task-dies",
            "A TaskManager is a process with slots. It dies. What dies with it?",
            (
                Option("Only the task that was running at that moment.", lambda tasks: tasks == 1),
                Option("All tasks in its slots.", lambda tasks: 1 < tasks < 6),
                Option("The whole job, for good.", lambda tasks: tasks >= 6),
            ),
            "Slots share the fate of their process. The tasks restart, here or elsewhere, from the last checkpoint.",
        ),
    ),
    exercises=(
        Exercise(
            "hashtags",
            "Write `hashtags(posts)`: from a stream of posts with a column `text`, make a stream with the columns `tag` "
            "and `n` that counts every occurrence of each word that begins with `#`.",
            (
                "One post becomes several records: which operator can do that? `filter` and `map` cannot.",
                "`posts.flat_map(function, schema)` calls the function with a record and emits the records that it returns.",
                "Split the text at spaces, keep the words that begin with `#`, and return one record for each. Then "
                "`key_by` the tag, and `aggregate(n=wb.count())`.",
            ),
            PipelineCheck(
                posts,
                lambda table: (Stream.from_table(table),),
                tag_counts,
                keys=("tag",),
                final=True,
                lookalikes=(
                    (
                        _posts_with_tag,
                        "This is the number of posts with the tag: a tag that occurs twice counts twice.",
                    ),
                    (_first_tags, "This counts only the first tag of each post."),
                    (_all_words, "This counts all words, not only tags."),
                    (_with_inner, "A word with `#` inside it, such as `a#b`, is not a tag."),
                    (_bare, "A tag begins with its `#`, also in the result."),
                    (_lower, "Tags are counted as they are written: `#Storm` is not `#storm`."),
                ),
            ),
        ),
    ),
)
