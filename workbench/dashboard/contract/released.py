"""Sliders that act when they are let go, and else follow the job."""

from __future__ import annotations

from bokeh.models import Slider


def follow(slider: Slider, value: float) -> None:
    """Move the slider, as if it had been let go there.

    Otherwise, where it was last let go by a user would be no change for Bokeh, and going there again would do nothing.

    Example:
        >>> slider = Slider(start=0, end=9, value=0)
        >>> follow(slider, 4)
        >>> slider.value, slider.value_throttled
        (4, 4)
    """
    if slider.value != value:
        slider.value = value
    if slider.value_throttled != value:
        slider.set_from_json("value_throttled", value)  # an assignment is refused: the page alone is to change it
