"""Exercise `hashtags` of lesson 1: what is special is a tag that occurs several times in a post, and one that does
not begin a word."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa

from workbench.api.streams.stream import Stream
from workbench.lessons.exercises.exercise import Judge
from workbench.lessons.exercises.pipelines import PipelineCheck

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


_SPECIAL = (
    "#flink #flink #flink",  # three times in one post
    "",
    "#spark",
    "a#b no tag",  # a sign inside a word
    "#Storm and #storm",  # two tags
    "   #x   #flink  ",  # several spaces
    "the new #a #b #c #d #e #f #g",  # more tags than a few, at the end
    "#once is seen once",
    "no",
    "#spark",  # the same post again
    "#0 #flink",
)
EDGES = ((pa.table({"text": _SPECIAL}),), (pa.table({"text": ["#a #b #a"] * 14}),))
"""The second one loses something with each failure."""


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


JUDGE: Judge = PipelineCheck(
    EDGES,
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
)
