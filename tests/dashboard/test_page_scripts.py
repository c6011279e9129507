"""Scripts and styles of pages are separate files, which are linted, type-checked and packaged."""

import ast
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from workbench.dashboard.charts import static
from workbench.lab.bench.looking.watching import call

ROOT = Path(__file__).parents[2]
EXTENSION = ROOT / "extension"
MODULES = EXTENSION / "node_modules"
BROUGHT = Path(sysconfig.get_path("scripts")) / "node"
NODE = str(BROUGHT) if BROUGHT.exists() else shutil.which("node")
FILES = sorted(path for path in (ROOT / "workbench").glob("**/static/**/*") if path.is_file())
SCRIPTS = [path for path in FILES if path.suffix == ".js"]

JAVASCRIPT = re.compile(
    r"=> \{|\bfunction *\(|\bconst \w+ =|\bnew \w+\(|\breturn \w+ ?[?>=]|addEventListener|\bcb_obj\b"
)
CSS = re.compile(r"^\s*(?::host\b[^{]*|[.\w][^{};]*)\{[^}]*[\w-]+: [^}]*;", re.MULTILINE)
PAGE = re.compile(r"<(?:html|head|body|style|script)\b|\{% block")
ASSEMBLED = {
    "charts/static.py", "charts/theme.py", "page/assets.py", "page/doorkeeper.py", "page/widget_carrier.py",
    "shown/saved_page.py", "watching.py",
}  # fmt: skip
"""Which put scripts together, or give them values, but hold none; the last one writes colours as variables."""


def run(*command, **more):
    return subprocess.run([NODE, *map(str, command)], capture_output=True, text=True, check=False, **more)


@pytest.fixture(scope="module")
def tools():
    if NODE is None or not (MODULES / "typescript").exists():
        pytest.skip("the extension has not been built here")


def eslint(*arguments, **more):
    config = ("--config", EXTENSION / "eslint.config.mjs", "--max-warnings", "0")
    return run(MODULES / "eslint/bin/eslint.js", *config, *arguments, cwd=ROOT, **more)


def tsc(project):
    return run(MODULES / "typescript/bin/tsc", "--project", project)


def test_scripts_and_the_extension_keep_to_the_rules(tools):
    checked = eslint("extension/src", "workbench")
    assert checked.returncode == 0, checked.stdout


def test_the_types_of_scripts_are_right(tools):
    checked = tsc(EXTENSION / "tsconfig.pages.json")
    assert checked.returncode == 0, checked.stdout


def test_both_checks_find_what_is_wrong(tools, tmp_path):
    wrong = 'export const wrong = (/** @type {Source} */ source) => {\n  var unused = source.get_colum("beat")\n}\n'
    place = "workbench/dashboard/static/scripts/wrong.js"
    assert "no-var" in eslint("--stdin", "--stdin-filename", place, input=wrong).stdout
    (tmp_path / "static").mkdir()
    (tmp_path / "static/wrong.js").write_text(wrong)
    project = tmp_path / "tsconfig.json"
    project.write_text(
        f'{{"extends": "{EXTENSION}/tsconfig.pages.json", "compilerOptions": {{"rootDir": "/"}},'
        f' "include": ["{EXTENSION}/pages/*.d.ts", "static/*.js"]}}'
    )
    assert "Property 'get_colum' does not exist" in tsc(project).stdout


@pytest.mark.skipif(NODE is None, reason="no Node here")
@pytest.mark.parametrize("code", [static.script("page"), static.script("notebook"), call("counted")])
def test_what_is_put_together_is_one_script_without_modules(code, tmp_path):
    assert not re.search(r"^(?:import|export)\b", code, re.MULTILINE)
    (tmp_path / "together.cjs").write_text(code)
    checked = run("--check", tmp_path / "together.cjs")
    assert checked.returncode == 0, checked.stderr


@pytest.mark.skipif(NODE is None, reason="no Node here")
@pytest.mark.parametrize("arrives", [True, False])
def test_a_slider_is_in_force_when_its_own_setting_is(arrives):
    """Another setting has the value of the slider from the beginning."""
    page = f"""
        const said = {{ delay: ["in force: <b>0ms</b>"], timeout: ["in force: <b>100ms</b>"] }}
        const texts = {{ type: "ColumnDataSource", id: "p1", columns: () => Object.keys(said),
                        get_column: (name) => said[name] }}
        const slider = {{ name: "buffer_timeout", format: {{ args: {{ words: ["0ms", "100ms"] }} }},
                         set value(index) {{ if ({str(arrives).lower()} && index === 0)
                             setTimeout(() => (said.timeout = ["in force: <b>0ms</b>"]), 20) }} }}
        globalThis.window = {{ Bokeh: {{ documents: [{{ _all_models: new Map([[1, texts], [2, slider]]) }}] }} }}
        {call("tune", "0ms", 500).replace("(() =>", "const tuned = (() =>", 1)}
        tuned.then(([, shown]) => console.log(said.timeout[0], shown >= 0))
    """
    told = run("-e", page)
    assert told.stdout == ("in force: <b>0ms</b> true\n" if arrives else "in force: <b>100ms</b> false\n"), told.stderr


@pytest.mark.skipif(NODE is None, reason="no Node here")
def test_a_function_that_stands_alone_needs_no_other():
    for module, names in (
        ("ticks", ("shortNumber", "shortMilliseconds", "shortSeconds", "shortBytes", "instant", "wordAt")),
        ("callbacks", ("showPane", "takeTyped", "chooseBox", "applyPatches", "showMoment")),
    ):
        declared = re.findall(r"^const (\w+)", static.script(module), re.MULTILINE)
        assert sorted(declared) == sorted(names)
        for name in names:
            alone = static._alone(module, name)
            assert [other for other in names if other != name and other in alone] == []
    code = static.ticks("shortNumber").code
    checked = run(
        "-e", f"const f = (tick) => {{ {code} }}\nconsole.log([0, 7.25, 950, 12345, 1.2e6, -3e9].map(f).join())"
    )
    assert checked.stdout == "0,7.25,950,12.3k,1.2M,-3G\n", checked.stderr


@pytest.mark.skipif(NODE is None, reason="no Node here")
def test_texts_of_the_graph_are_shortened_to_the_pixels_that_they_have(tmp_path):
    """In a window of its own, beside a notebook, and before anybody knows how wide the drawing is."""
    asked = """
    const drawing = (width) => ({ properties: { inner_width: { is_unset: width === null } }, inner_width: width,
      outline_line_width: 1 })
    const columns = { left: [0], right: [0.25], parallelism: ["×2"], x0: [0.25], x1: [0.35] }
    const source = { get_column: (name) => columns[name] }
    const texts = { title: "departures[11]", first: "source -> filter -> local", rates: "1.5k → 1.5k rec/s",
      shares: "idle 4, busy 96, back-pr. 0 %" }
    for (const width of [700, 480, null]) {
      const figure = drawing(width)
      const told = Object.entries(texts).map(
        ([name, text]) => fitBoxes([text], { figure, boxes: source, name, letter: 6 })[0])
      told.push(fitBoxes(["failed; restarts in 2.1 s"], { figure, boxes: source, name: "shares", letter: 6 })[0])
      console.log([...told, fitEdges(["rebalance"], { figure, edges: source, letter: 6 })[0]].join(" | "))
    }
    """
    (tmp_path / "fits.js").write_text(static.script("fits") + asked)
    told = run(tmp_path / "fits.js")
    assert told.stdout.splitlines() == [
        "departures[11] | source -> filter -> local | 1.5k → 1.5k rec/s | busy 96 % | failed; restarts in 2.1 s | "
        "rebalance",
        "departur…[11] | source -> filte… | 1.5k → 1.5k/s | busy 96 % | failed; restart… | ",
        "departures[11] | source -> filter -> local | 1.5k → 1.5k rec/s | idle 4, busy 96, back-pr. 0 % | "
        "failed; restarts in 2.1 s | rebalance",
    ], told.stderr


def test_the_wheel_contains_them():
    packed = {Path(file.path) for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert len(SCRIPTS) >= 9
    assert [path for path in FILES if path not in packed] == []


def strings(source):
    """The texts in a module that are no docstrings; of an f-string what is between its values."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.lineno, node.value


@pytest.mark.parametrize("folder", ["dashboard", "lab/bench/looking", "jupyter"])
def test_no_module_holds_scripts_styles_or_pages(folder):
    place = ROOT / "workbench" / folder
    found = [
        f"{path.relative_to(place)}:{line}: {text.strip()[:60]!r}"
        for path in sorted(place.rglob("*.py"))
        if str(path.relative_to(place)) not in ASSEMBLED
        for line, text in strings(path.read_text(encoding="utf-8"))
        if JAVASCRIPT.search(text) or CSS.search(text) or PAGE.search(text)
    ]
    assert found == []


def test_the_search_finds_them():
    [(_, script)] = strings('X = """const a = (b) => { c(b) }"""')
    [(_, style)] = strings("X = ':host { color: red; }'")
    [(_, page)] = strings("X = '{% block contents %}<style>p {}</style>'")
    assert JAVASCRIPT.search(script)
    assert CSS.search(style)
    assert PAGE.search(page)


def test_every_file_is_used():
    sources = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "workbench").rglob("*") if path.suffix in (".py", ".js")
    )
    assert [path.name for path in FILES if not re.search(rf"[\"'/]{path.stem}[\"'.]", sources)] == []
