"""Right and wrong answers to the exercises of lesson 1."""

import pyarrow as pa

import workbench as wb

TAG = {"tag": pa.string()}
COUNTED = {"tag": pa.string(), "n": pa.int64()}


def words(text):
    return [{"tag": word} for word in text.split() if word.startswith("#")]


def tags(posts):
    return posts.flat_map(lambda post: words(post["text"]), TAG)


def counts(stream):
    return stream.key_by("tag").aggregate(n=wb.count())


def by_flat_map(posts):
    return counts(posts.flat_map(lambda post: words(post["text"]), TAG))


def by_columns(posts):
    return counts(posts.flat_map(lambda text: [word["tag"] for word in words(text)], TAG, columns="text"))


def by_state(posts):
    def count(record, state):
        state.n += 1
        return {"tag": record["tag"], "n": state.n}

    state = {"n": wb.state.ValueState(pa.int64(), default=0)}
    return tags(posts).key_by("tag").process(count, COUNTED, state=state)


def tagged(function):
    return lambda posts: counts(posts.flat_map(lambda post: function(post["text"]), TAG))


def with_a_global(posts):
    seen = {}

    def count(record, state):
        seen[record["tag"]] = seen.get(record["tag"], 0) + 1
        return {"tag": record["tag"], "n": seen[record["tag"]]}

    return tags(posts).key_by("tag").process(count, COUNTED)


def by_query(posts):
    return wb.sql("SELECT tag, COUNT(*) AS n FROM words GROUP BY tag", words=tags(posts))


def by_filter(posts):
    all_words = posts.flat_map(lambda post: [{"tag": word} for word in post["text"].split()], TAG)
    return all_words.filter("tag LIKE '#%'").with_columns(one="1").key_by("tag").aggregate(n=wb.sum("one"))


def by_map(posts):
    """A map of tags for each first letter."""

    def count(record, state):
        state.counts[record["tag"]] = state.counts.get(record["tag"], 0) + 1
        return {"tag": record["tag"], "n": state.counts[record["tag"]]}

    state = {"counts": wb.state.MapState(pa.string(), pa.int64())}
    return tags(posts).with_columns(letter="LEFT(tag, 2)").key_by("letter").process(count, COUNTED, state=state)


def from_rows(posts):
    found = {}
    for post in posts.collect().to_pylist():
        for word in words(post["text"]):
            found[word["tag"]] = found.get(word["tag"], 0) + 1
    return wb.Stream.from_table(pa.table({"tag": list(found), "n": list(found.values())}))


def once_each(posts):
    """Counts a tag in one post after the other only once."""
    last = {"tag": pa.string(), "post": pa.string()}
    tagged = posts.flat_map(lambda post: [{**word, "post": post["text"]} for word in words(post["text"])], last)
    return counts(tagged.distinct())


RIGHT = {
    "hashtags": {
        "flat_map": by_flat_map,
        "flat_map of a column": by_columns,
        "process": by_state,
        "a query": by_query,
        "a sum of ones": by_filter,
        "a map": by_map,
        "at the end": lambda posts: (
            tags(posts).key_by("tag").window(wb.windows.global_window()).aggregate(n=wb.count())
        ),
    }
}
WRONG = {
    "hashtags": {
        "no key": (lambda posts: tags(posts), "no column 'n'"),
        "no aggregate": (lambda posts: tags(posts).key_by("tag"), "a KeyedStream"),
        "no return": (lambda posts: None, "a `return` missing"),
        "each tag once a post": (
            tagged(lambda text: [{"tag": tag} for tag in {word["tag"] for word in words(text)}]),
            "the number of posts with the tag",
        ),
        "the first tag": (tagged(lambda text: words(text)[:1]), "only the first tag of each post"),
        "all words": (tagged(lambda text: [{"tag": word} for word in text.split()]), "counts all words"),
        "a sign within": (
            tagged(lambda text: [{"tag": word} for word in text.split() if "#" in word]), "is not a tag"
        ),
        "lower case": (tagged(lambda text: words(text.lower())), "as they are written"),
        "without the sign": (tagged(lambda text: [{"tag": w["tag"][1:]} for w in words(text)]), "begins with its `#`"),
        "split at one character": (tagged(lambda text: [{"tag": c} for c in text if c == "#"]), "rows are missing"),
        "memory outside of state": (with_a_global, "has to be state in checkpoints"),
        "collected": (from_rows, "runs a job itself"),
        "of rows": (
            lambda posts: wb.Stream.from_table(pa.table({"tag": ["#flink"], "n": [1]})),
            "a source that the function makes",
        ),
        "equal posts once": (once_each, "correct is n = "),
        "three tags a post": (tagged(lambda text: words(text)[:3]), "rows are missing"),
        "an error": (lambda posts: posts.flat_map(words, TAG, columns="txt"), "txt"),
        "another name": (
            lambda posts: tags(posts).key_by("tag").aggregate(count=wb.count()),
            "no column 'n'",
        ),
        "how many are new": (
            lambda posts: tags(posts).key_by("tag").process(
                lambda record, state: {"tag": record["tag"], "n": 1}, COUNTED
            ),
            "the result is n = 1",
        ),
    }
}  # fmt: skip
