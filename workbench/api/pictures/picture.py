"""A physical graph as a small SVG picture, for reprs and reports (F1-2)."""

from __future__ import annotations

from html import escape

from workbench.plan.physical import PhysicalGraph, Vertex
from workbench.telemetry.frames import Frame, VertexFrame

BOX_WIDTH = 190
LINE_HEIGHT = 15
GAP = 96
MARGIN = 10
NAME_LENGTH = 28
_LOCAL = "large batches are aggregated by key and window before they travel"

_STYLE = """
.wb-graph{max-width:100%;height:auto;font-family:system-ui,sans-serif;color:var(--jp-ui-font-color1,#333)}
.wb-graph text{fill:currentColor;font-size:11px}
.wb-graph .name{font-size:12px;font-weight:600}
.wb-graph .soft{opacity:.72}
.wb-graph rect.box{fill:none;stroke:currentColor;stroke-opacity:.55;rx:6}
.wb-graph line{stroke:currentColor;stroke-opacity:.6}
"""


def graph_svg(graph: PhysicalGraph, title: str, frame: Frame | None = None) -> str:
    """The picture as text; with a frame, each box also shows the rates of that moment. All names are escaped."""
    heights = {vertex.id: _height(vertex) for vertex in graph.vertices}
    layers = sorted({vertex.x for vertex in graph.vertices})
    columns = {x: [vertex for vertex in graph.vertices if vertex.x == x] for x in layers}
    total = max(sum(heights[v.id] + 16 for v in column) for column in columns.values())
    places: dict[str, tuple[float, float]] = {}
    for level, x in enumerate(layers):
        column = sorted(columns[x], key=lambda v: v.y)
        top = MARGIN + (total - sum(heights[v.id] + 16 for v in column)) / 2
        for vertex in column:
            places[vertex.id] = (MARGIN + level * (BOX_WIDTH + GAP), top)
            top += heights[vertex.id] + 16
    width = 2 * MARGIN + len(layers) * BOX_WIDTH + (len(layers) - 1) * GAP
    live = {} if frame is None else {vertex.id: vertex for vertex in frame.vertices}
    parts = [
        f"<svg class='wb-graph' role='img' aria-label='{escape(f'dataflow graph of {title}', quote=True)}' "
        f"xmlns='http://www.w3.org/2000/svg' width='{width}' viewBox='0 0 {width} {total + 2 * MARGIN}'>",
        f"<style>{_STYLE}</style>",
    ]
    for edge in graph.edges:
        x1, y1 = places[edge.source.id]
        x2, y2 = places[edge.target.id]
        start, end = x1 + BOX_WIDTH, x2
        from_y, to_y = y1 + heights[edge.source.id] / 2, y2 + heights[edge.target.id] / 2
        parts.append(f"<line x1='{start}' y1='{from_y:.0f}' x2='{end - 6}' y2='{to_y:.0f}'/>")
        parts.append(f"<path d='M{end} {to_y:.0f}l-8 -4v8z' fill='currentColor'/>")
        label = (
            edge.exchange + (f" {', '.join(edge.keys)}" if edge.keys else "") + (f" ({edge.tag})" if edge.tag else "")
        )
        parts.append(
            f"<text class='soft' text-anchor='middle' x='{(start + end) / 2:.0f}' y='{(from_y + to_y) / 2 - 6:.0f}'>"
            f"{escape(_short(label, 18))}</text>"
        )
    for vertex in graph.vertices:
        parts += _box(vertex, *places[vertex.id], heights[vertex.id], live.get(vertex.id))
    return "".join([*parts, "</svg>"])


def _height(vertex: Vertex) -> int:
    return 12 + LINE_HEIGHT * (len(vertex.chain) + 1)


def _box(vertex: Vertex, x: float, y: float, height: int, live: VertexFrame | None) -> list[str]:
    parts = [f"<rect class='box' x='{x}' y='{y:.0f}' width='{BOX_WIDTH}' height='{height}'/>"]
    abouts = [node.spec.describe() for node in vertex.nodes]
    abouts += [_LOCAL] * (len(vertex.chain) - len(abouts))
    for index, (uid, about) in enumerate(zip(vertex.chain, abouts, strict=True)):
        tip = escape(f"{uid}: {about}")
        line = y + 17 + index * LINE_HEIGHT
        parts.append(
            f"<text class='name' x='{x + 9}' y='{line:.0f}'>{escape(_short(uid, NAME_LENGTH))}"
            f"<title>{tip}</title></text>"
        )
    foot = f"x {vertex.parallelism}"
    if live is not None and live.metrics.get("numRecordsInPerSecond") is not None:
        busy = float(live.metrics["busyTimeMsPerSecond"] or 0) / 10
        foot += f" · {float(live.metrics['numRecordsInPerSecond'] or 0):,.0f} records/s · {busy:.0f} % busy"
    parts.append(f"<text class='soft' x='{x + 9}' y='{y + height - 8:.0f}'>{escape(foot)}</text>")
    return parts


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
