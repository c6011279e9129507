"""The colours of the lessons' pictures are distinguishable for colour-blind people, and visible on white and black."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from workbench.lessons.exercises.said import _COLOURS
from workbench.lessons.pictures.curves import curves
from workbench.lessons.pictures.frame import DASHES, SERIES
from workbench.lessons.pictures.times import times

SEEN: dict[str, tuple[tuple[float, float, float], ...]] = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no red cones": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue cones": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What becomes of linear RGB. Source: Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of
Color Vision Deficiency, 2009, at severity 1."""
PALE = 3.0
"""The contrast that graphical objects need (WCAG 2.1, 1.4.11)."""
APART = 15.0
"""Of two colours in CIELAB; a difference of 2.3 is just noticeable side by side."""


def linear(colour: str) -> list[float]:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb: list[float]) -> tuple[float, float, float]:
    red, green, blue = (min(max(part, 0.0), 1.0) for part in rgb)
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def apart(one: str, other: str, eyes: str) -> float:
    seen = [[sum(w * p for w, p in zip(row, linear(each), strict=True)) for row in SEEN[eyes]] for each in (one, other)]
    return sum((a - b) ** 2 for a, b in zip(lab(seen[0]), lab(seen[1]), strict=True)) ** 0.5


def test_the_measures_know_what_is_alike() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert apart("#ff0000", "#00aa00", "all cones") > 100
    assert apart("#a86a00", "#6f8000", "no green cones") < APART


@pytest.mark.parametrize("eyes", SEEN)
def test_the_series_of_a_picture_can_be_told_apart(eyes: str) -> None:
    near = {(one, other): apart(one, other, eyes) for one, other in combinations(SERIES, 2)}
    assert {pair: distance for pair, distance in near.items() if distance < APART} == {}


def test_series_differ_without_any_colour_too() -> None:
    assert len(set(DASHES)) == len(DASHES) == len(SERIES)


@pytest.mark.parametrize("ground", ["#ffffff", "#000000", "#111111"])
def test_the_series_are_seen_on_the_ground_of_each_theme(ground: str) -> None:
    assert {colour: contrast(colour, ground) for colour in SERIES if contrast(colour, ground) < PALE} == {}


def test_every_picture_says_in_words_what_it_shows() -> None:
    pictures = [curves(["1", "2"], {"a": [1.0, 2.0]}, "x", "y"), times([(1, 2, "tap")], watermark=[(0, 0), (2, 1)])]
    for picture in pictures:
        assert re.search(r"<svg [^>]*role='img' aria-label='[^']+'", picture.svg)
    assert "tap happened at 1 and was seen at 2" in pictures[1].words


def test_a_card_says_in_words_what_its_colour_says() -> None:
    assert len(set(_COLOURS.values())) == len(_COLOURS)
