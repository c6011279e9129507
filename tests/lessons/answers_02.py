"""Right and wrong answers to the exercises of lesson 2."""


def both(timeout, size=64):
    return {"buffer_timeout": timeout, "buffer_size": size}


FEW = "for 240 orders. Each buffer costs the same"
SLOW = "An order waits until its buffer is"
RIGHT = {
    "settings": {
        "15 ms": both("15ms"),
        "13 ms": both("13ms", 1000),
        "a small buffer": both("16ms", 8),
        "only full buffers": both("disabled", 5),
        "the fourth order just so": both("8ms"),
        "a fraction of a second": {"buffer_timeout": "0.014s"},
    },
}
WRONG = {
    "settings": {
        "no waiting": (both("0ms"), FEW),
        "2 ms": (both("2ms"), FEW),
        "5 ms": (both("5ms"), FEW),
        "50 ms": (both("50ms"), SLOW),
        "Flink's default": ({"buffer_timeout": "100ms"}, SLOW),
        "only full buffers": (both("disabled", 64), SLOW),
        "a buffer of one": (both("15ms", 1), FEW),
        "a buffer of two": (both("15ms", 2), FEW),
        "7 ms": (both("7ms"), FEW),
        "21 ms": (both("21ms"), SLOW),
        "full buffers of ten": (both("disabled", 10), SLOW),
        "a text": ("15ms", "not a dict of settings"),
        "another setting": ({"parallelism": 4}, "'parallelism' is not a setting of this exercise"),
        "no unit": (both("fifteen"), "fifteen"),
        "nothing": ({}, "no settings yet"),
    },
}
