"""The documentation site without building it: its version, and the list of all versions."""

from __future__ import annotations

import re
import runpy
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

CONF = Path(__file__).parents[2] / "docs/site/conf.py"


def settings(monkeypatch: pytest.MonkeyPatch, named: str) -> dict[str, Any]:
    monkeypatch.setenv("DOCS_VERSION", named)
    return runpy.run_path(str(CONF))


def test_every_page_has_the_version_in_its_title(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(monkeypatch, "")["html_title"] == f"Streaming Workbench {version('streaming-workbench')}"
    named = settings(monkeypatch, "v0.2.0")
    assert named["html_title"] == "Streaming Workbench v0.2.0"
    assert named["html_context"] == {"is_one_of_several": True}
    for sidebar in named["html_sidebars"]["**"]:
        assert sidebar.startswith("sidebar/") or (CONF.parent / "templates" / sidebar).is_file()


def test_all_versions_are_listed_the_newest_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "v1.0.0", "dev"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "sources").mkdir()
    assert settings(monkeypatch, "dev")["list_versions"](tmp_path) == ["v1.0.0", "0.10.0", "0.9.0", "dev"]
    links = re.findall('href="(.*?)"', (tmp_path / "index.html").read_text())
    assert links == ["v1.0.0/index.html", "0.10.0/index.html", "0.9.0/index.html", "dev/index.html"]


def test_the_readme_leads_to_lessons_with_outputs_and_its_pictures_are_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    conf = settings(monkeypatch, "")
    source = ["[a lesson](notebooks/course/04_time.ipynb)"]
    conf["_solved"](None, "README", source)
    assert source == ["[a lesson](notebooks/course/solved/04_time.ipynb)"]
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), srcdir=CONF.parents[2], outdir=tmp_path)
    conf["_front_page"](app, None)
    assert {path.name for path in (tmp_path / "docs/images").iterdir()} >= {"film-dark.webp", "film-light.webp"}


def test_dark_pages_have_every_colour_that_pictures_take(monkeypatch: pytest.MonkeyPatch) -> None:
    named = settings(monkeypatch, "")["html_theme_options"]["dark_css_variables"]
    rooms = [CONF.parents[2] / "workbench" / room for room in ("api/pictures", "lessons")]
    used = {
        name
        for room in rooms
        for path in room.rglob("*.py")
        for name in re.findall(r"var\(--(jp-[\w-]+)", path.read_text())
    }
    assert used == named.keys()
