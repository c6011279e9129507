"""Where pictures go, and how they are written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from PIL import Image

FOLDER = Path(__file__).parents[3] / "docs" / "images"
SCHEMES = ("light", "dark")
COLOURS = 256


def shoot(page: Any, name: str, selector: str | None = None) -> Path:
    """A screenshot of the page, or of one element of it, as a PNG with a palette."""
    target = page if selector is None else page.locator(selector).first
    picture = Image.open(io.BytesIO(target.screenshot(timeout=120_000))).convert("RGB")
    path = FOLDER / f"{name}.png"
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return path
