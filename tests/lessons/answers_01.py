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


RIGHT = {"hashtags": {"flat_map": by_flat_map, "flat_map of a column": by_columns, "process": by_state}}
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
