"""The layout of the dashboard in a real browser: its first views, the views behind buttons, and that nothing is cut
off."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from browsing import CHROMIUM, PATIENCE_MS, READY, chromium
from layout_job import start_job

import workbench as wb
from workbench.dashboard.views.graph import LOWEST

pytest.importorskip("playwright.sync_api")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the PATH, nor in WORKBENCH_CHROMIUM"),
]

DOCKED = (553, 800)
"""Of a view docked beside a notebook and the sidebar, in a window of 1440 by 900."""
WIDTHS = (DOCKED[0], 700, 800, 1000, 1440, 1920)
EVERY = """const every = node => [...(node.shadowRoot ?? node).querySelectorAll("*")].flatMap(one =>
    [one, ...(one.shadowRoot ? every(one) : [])])
const seen = () => every(document.body).filter(one => one.checkVisibility())"""
CARDS = f"""() => {{ {EVERY}
    return seen().filter(one => one.classList.contains("wb-card"))
        .flatMap(one => [...one.classList].filter(name => name.startsWith("wb-") && name !== "wb-card"))
        .map(name => name.slice(3)) }}"""
SCROLLING = f"""() => {{ {EVERY}
    return seen().filter(one => {{
        const {{ overflowX, overflowY }} = getComputedStyle(one)
        const down = ["auto", "scroll"].includes(overflowY) && one.scrollHeight > one.clientHeight + 1
        return down || (["auto", "scroll"].includes(overflowX) && one.scrollWidth > one.clientWidth + 1)
    }}).map(one => `${{one.tagName}} ${{one.className}} ${{one.innerText?.slice(0, 60)}}`) }}"""
ARROW = f"""() => {{ {EVERY}
    const select = seen().find(one => one.matches("select.bk-input"))
    const {{ backgroundImage, backgroundColor }} = getComputedStyle(select)
    const light = text => {{
        const [r, g, b] = text.match(/[\\d.]+/g).map(part => part / 255).map(
            part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
    }}
    const drawn = backgroundImage.match(/rgb\\([^)]*\\)/g).map(light)
    return drawn.map(one => Math.max(one, light(backgroundColor)) / Math.min(one, light(backgroundColor))) }}"""
"""The contrast of the two halves of a list's arrow with what is behind it."""
KNOBS = f"""() => {{ {EVERY}
    const box = one => one.getBoundingClientRect()
    return seen().filter(one => one.classList.contains("wb-knob")).map(knob => {{
        const inside = every(knob).filter(one => one.checkVisibility())
        const parts = one => [...one.shadowRoot.children].filter(part => part.tagName === "DIV")
        const [words, moved] = parts(knob)
        const [line, below] = parts(words)
        const told = box(below ?? inside.find(one => one.classList.contains("wb-answer")))
        const [named, inForce] = [...line.shadowRoot.children].filter(part => part.tagName === "DIV").map(box)
        const [slider, field] = [".wb-slider", "input"].map(name => box(inside.find(one => one.matches(name))))
        const beside = slider.right <= field.left && field.right <= box(knob).right + 1
        const apart = Math.abs(slider.top + slider.bottom - field.top - field.bottom) / 2
        const over = told.right <= box(moved).left || told.bottom <= box(moved).top + 1
        const note = inside.find(one => one.matches(".bk-clearfix:has(b)"))
        const whole = note.scrollWidth <= note.clientWidth
        const isFree = told.top >= box(line).bottom - 1 || told.left >= inForce.right - 1
        const isTold = isFree && named.right <= inForce.left
        const [top, middle] = [box(knob).top, (slider.top + slider.bottom) / 2]
        return {{ top, middle, said: box(line).height, whole, beside, apart, over, told: isTold }} }}) }}"""
"""Where each slider is, how high the line over it is, and whether it, its field and what is told have their places."""
STICKING = f"""() => {{ {EVERY}
    return seen().filter(one => one.classList.contains("wb-card")).flatMap(card => every(card)
        .filter(one => one.matches("p, td, th, button, input, select, h3") && one.checkVisibility())
        .filter(one => one.getBoundingClientRect().right > card.getBoundingClientRect().right)
        .map(one => `${{one.tagName}} ${{one.innerText?.slice(0, 60)}}`)) }}"""
"""What is cut at the right edge of its card."""
PLACES = f"""() => {{ {EVERY}
    return seen().filter(one => one.matches(".wb-slider, input, select, button")).map(one => {{
        const {{ x, y }} = one.getBoundingClientRect()
        return [one.tagName, x, y] }}) }}"""
"""Where the controls are."""
WRITTEN = """() => {
    const plot = Bokeh.documents[0]._all_models.values().find(one => one.attributes.html_attributes?.["aria-label"]
        ?.startsWith("Event time to the right"))
    const view = Bokeh.index.find_one(plot)
    const isText = one => one.glyph.type === "Text" && one.data_source.columns().includes("right")
    const [texts] = plot.renderers.filter(isText)
    const glyph = view.views.find_one(texts).glyph
    const pen = document.createElement("canvas").getContext("2d")
    pen.font = `11px ${plot.below[0].major_label_text_font}`
    const words = texts.data_source.get_column("text")
    const shown = words.map((_, row) => glyph.text.get(row)).map((text, row) => {
        if (text === "") return null
        const left = glyph.sx[row] - view.frame.bbox.left + glyph.x_offset.get(row)
        const top = glyph.sy[row] - view.frame.bbox.top
        return [left, left + pen.measureText(text).width, top, top + 11]
    })
    return [[view.frame.bbox.width, view.frame.bbox.height], ...shown.filter(one => one !== null)]
}"""
"""The size of the plane of event time, and the places of what is written on windows, in its pixels."""
FRAMES = """() => new Promise(done => {
    let left = 3
    const next = () => left-- > 0 ? requestAnimationFrame(next) : done()
    next()
})"""
"""Three pictures of the page later."""
FALL_SILENT = """() => {
    const root = Bokeh.documents[0].roots()[0]
    root.setv({ css_classes: [...root.css_classes, "wb-quiet"] }, { sync: false })
}"""
"""What the page's script does when it has heard nothing for a while."""
WATCH = f"""name => {{ {EVERY}
    const slider = seen().find(one => one.matches(".wb-slider") && one.ariaLabel === name)
    window.tops = []
    setInterval(() => window.tops.push(slider.getBoundingClientRect().top), 50)
}}"""
"""Notes where a slider is, from now on."""
MOVED = "() => Math.max(...window.tops) - Math.min(...window.tops)"
"""How far it has moved since, in pixels."""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""By how many pixels the page is wider than its window."""


@pytest.fixture(scope="module")
def job():
    job = start_job()
    yield job
    job.cancel()


@pytest.fixture(scope="module")
def url(job):
    pages = wb.serve()
    yield pages.url.replace("localhost", "127.0.0.1") + f"&job={job.name}"
    pages.stop()


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def shared(browser):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.close()


@pytest.fixture
def page(shared, url):
    """The page of all tests, as it is when it is opened: to load it takes half of the time of a test."""
    shared.set_viewport_size({"width": 1440, "height": 900})
    shared.emulate_media(color_scheme="light")
    if shared.url == url:
        press(shared, "Now")
    else:
        shared.goto(url)
        shared.wait_for_function(READY)
        shared.get_by_text("RUNNING", exact=False).first.wait_for()
    return shared


def press(page, title):
    page.get_by_role("group", name="Views").get_by_text(title, exact=True).click()


def shows(page, *cards):
    page.wait_for_function(f"cards => JSON.stringify(({CARDS})()) === JSON.stringify(cards)", arg=list(cards))


def test_it_opens_with_the_headline_the_graph_and_what_matters_now(page):
    shows(page, "header", "graph", "latency", "watermarks", "sink")
    page.get_by_text("Half reach a sink within").wait_for()


def test_a_slider_its_chart_and_the_headline_are_on_one_screen(page):
    for name in ("Buffer timeout", "Latency percentiles over time", "Before and after each tuning"):
        box = page.get_by_label(name, exact=True).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, name


def test_beside_a_notebook_and_the_sidebar_a_slider_and_its_chart_are_on_one_screen(page):
    """Of a graph with one row of boxes; each further row of this one moves them down."""
    page.set_viewport_size(dict(zip(("width", "height"), DOCKED, strict=True)))
    page.evaluate(FRAMES)
    page.wait_for_function(f"() => ({WIDER})() <= 0")
    drawing, chart = (
        page.get_by_label(name, exact=True).first.bounding_box()
        for name in ("Dataflow graph: operators, rates, load and buffers", "Latency percentiles over time")
    )
    assert chart["y"] + chart["height"] - (drawing["height"] - LOWEST) <= DOCKED[1]
    views = page.get_by_role("group", name="Views").get_by_role("button")
    assert len({one.bounding_box()["y"] for one in views.all()}) == 1


def test_a_button_shows_its_view_alone_and_the_page_remembers_it(page):
    press(page, "Checkpoints")
    shows(page, "header", "graph", "checkpoints")
    page.reload()
    page.wait_for_function(READY)
    shows(page, "header", "graph", "checkpoints")
    press(page, "Now")
    shows(page, "header", "graph", "latency", "watermarks", "sink")


@pytest.mark.parametrize(
    "title", ["Now", "Latency", "Watermarks", "Event time", "Buffers", "Checkpoints", "Results", "Controls"]
)
def test_nothing_scrolls_within_the_page_nor_sticks_out_of_it(page, title):
    press(page, title)
    page.wait_for_function(f"title => ({CARDS})().length === (title === 'Now' ? 5 : 3)", arg=title)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(FRAMES)
        assert page.evaluate(SCROLLING) == [], width
        assert page.evaluate(WIDER) <= 0, width
        assert page.evaluate(STICKING) == [], width
        knobs = page.evaluate(KNOBS)
        assert len(knobs) == {"Watermarks": 1, "Checkpoints": 4}.get(title, len(knobs)), width
        for first, second in pairwise(knobs):
            if first["top"] == second["top"]:
                assert first["middle"] == pytest.approx(second["middle"], abs=1), width
        for knob in knobs:
            assert 0 < knob["said"] < 20, width  # one line
            assert knob["apart"] < 4, width
            assert [knob[name] for name in ("whole", "beside", "over", "told")] == [True] * 4, width


def test_a_table_that_has_the_page_for_itself_is_not_cut(page, url):
    page.set_viewport_size({"width": 1250, "height": 900})
    page.goto(f"{url}&view=subtasks")
    page.wait_for_function(READY)
    page.get_by_text("arrivals[0]", exact=True).first.wait_for()
    assert page.evaluate(SCROLLING) == []


def test_a_served_page_follows_the_system_between_light_and_dark(page):
    ground = f"""() => {{ {EVERY}
        return getComputedStyle(seen().find(one => one.classList.contains("wb-card"))).backgroundColor }}"""
    press(page, "Controls")
    page.get_by_label("Slow down").first.wait_for()
    for scheme, sign in (("light", "==="), ("dark", "!==")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function(f"() => ({ground})() {sign} 'rgb(255, 255, 255)'")
        arrow = page.evaluate(ARROW)
        assert len(arrow) == 2, scheme
        assert min(arrow) > 4.5, scheme


REFUSED = "five parsecs or whatever else somebody writes who has not read which values a duration can have"


def test_long_refusals_move_no_control(page, url):
    job = start_job("refusing")
    page.goto(url.replace("layout", job.name))
    page.get_by_text("Half reach a sink within").first.wait_for()
    for title, name in (("Latency", "Buffer timeout"), ("Checkpoints", "Checkpoint mode")):
        press(page, title)
        field = page.get_by_label(f"{name}: any value", exact=True).filter(visible=True)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(FRAMES)
            before = page.evaluate(PLACES)
            field.fill(f"{REFUSED} {width}")
            field.press("Enter")
            page.locator(f"span.bad:visible:has-text('{REFUSED}')").wait_for()
            page.evaluate(FRAMES)
            assert page.evaluate(PLACES) == before, (title, width)


def test_what_is_written_on_windows_is_whole_and_over_no_other_text(page, url):
    """While the job runs, and after that, when no frame comes that would place it anew."""
    job = start_job("windows")
    page.goto(url.replace("layout", job.name))
    press(page, "Event time")
    for width in (*WIDTHS, None, *WIDTHS[::-1]):
        if width is None:
            job.cancel()
            page.get_by_text("CANCELED", exact=False).first.wait_for()
            continue
        page.set_viewport_size({"width": width, "height": 1500})
        page.wait_for_function(f"() => ({WRITTEN})().length > 1")
        page.evaluate(FRAMES)
        plot, *texts = page.evaluate(WRITTEN)
        for left, right, top, bottom in texts:
            assert left >= 0, width
            assert right <= plot[0], width
            assert top >= 0, width
            assert bottom <= plot[1], width
        for (left, right, top, bottom), (start, end, high, low) in combinations(texts, 2):
            assert right <= start or end <= left or bottom <= high or low <= top, width


def test_a_slider_stays_under_the_pointer_while_things_happen(browser, page, url):
    """Whether one view or all are shown, in a wide window and in a narrow one, and when the kernel falls silent."""
    job = start_job("eventful")
    page.goto(url.replace("layout", job.name))
    page.get_by_text("Half reach a sink within").first.wait_for()
    timeout = page.get_by_label("Buffer timeout", exact=True).first

    def places():
        """Where the slider is in windows of several widths."""
        found = []
        for width in (700, 900, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.evaluate(FRAMES)
            found.append(timeout.bounding_box())
        return found

    before = places()
    alone = browser.new_page(viewport={"width": 560, "height": 900})
    alone.set_default_timeout(PATIENCE_MS)
    alone.goto(f"{url.replace('layout', job.name)}&view=checkpoints")
    alone.get_by_text("unusual input appear here").first.wait_for()
    alone.evaluate(FRAMES)
    alone.evaluate(WATCH, "Checkpoint mode")
    price = alone.get_by_text("of the time of").first  # what checkpoints cost, above the slider
    price.wait_for()
    interval = alone.get_by_label("Checkpoint interval: any value", exact=True).first
    interval.fill("900ms")
    interval.press("Enter")
    alone.get_by_text("✓ requested").first.wait_for()
    price.wait_for(state="hidden")  # the answer has its place for a while
    job.tune(buffer_size=512)
    page.get_by_text("buffer_size 262144 → 512").first.wait_for()
    assert timeout.bounding_box() == before[-1]
    job.faults.fail(task="hourly[0]")
    page.get_by_text("records read again").first.wait_for()
    assert places() == before
    alone.get_by_text("records read again").first.wait_for()
    assert alone.evaluate(MOVED) <= 1
    alone.close()
    page.evaluate(FALL_SILENT)
    page.locator(".silence").first.wait_for()
    assert places() == before
