"""The warehouse as a drawing: base relations, foreign keys between them, views, and what each view needs."""

from __future__ import annotations

from msgspec import Struct

from selfmaint.api.audit import AuditReport
from selfmaint.audit.example import word
from selfmaint.audit.matrix import ViewAudit
from selfmaint.report.audit.markup import Markup, joined, tag
from selfmaint.report.audit.words import MARKS
from selfmaint.warehouse.catalog import BaseRelation

_ROW, _HEIGHT, _LEFT, _BOX, _GAP = 62, 44, 120, 270, 250
_LONGEST = 30
"""Longer names are cut in the drawing; the whole name is in the tooltip."""


class _Box(Struct, frozen=True):
    x: int
    y: int

    @property
    def middle(self) -> float:
        return self.y + _HEIGHT / 2


def drawing(report: AuditReport) -> Markup:
    """The drawing as SVG, with a title and a description."""
    relations = _ordered(report)
    views = report.audit.views
    rows = max(len(relations), len(views), 1)
    places = {
        r.name: _Box(_LEFT, 40 + i * _ROW + _shift(rows, len(relations))) for i, r in enumerate(relations)
    }
    right = _LEFT + _BOX + _GAP
    targets = {
        v.view.name: _Box(right, 40 + i * _ROW + _shift(rows, len(views))) for i, v in enumerate(views)
    }
    width, height = right + _BOX + 20, 50 + rows * _ROW
    parts = [
        tag("title", "The warehouse"),
        tag("desc", "Base relations on the left, views on the right; lines say what each view reads."),
        tag("text", "base relations", x=_LEFT, y=22, class_="caption"),
        tag("text", "views", x=right, y=22, class_="caption"),
        *(_foreign_keys(relation, places) for relation in relations),
        *(_reads(its, places, targets[its.view.name]) for its in views),
        *(_relation(relation, places[relation.name]) for relation in relations),
        *(_view(its, targets[its.view.name]) for its in views),
    ]
    box = f"0 0 {width} {height}"
    return tag("svg", *parts, viewBox=box, role="img", class_="drawing", style=f"max-width:{width}px")


def _shift(rows: int, own: int) -> int:
    return (rows - own) * _ROW // 2


def _ordered(report: AuditReport) -> list[BaseRelation]:
    """The relations in the order in which views read them, then the others."""
    names = dict.fromkeys(name for its in report.audit.views for name in _relations(its))
    relations = report.audit.catalog.relations
    return [relations[name] for name in (*names, *(n for n in relations if n not in names))]


def _relations(its: ViewAudit) -> list[str]:
    return [line.relation for line in its.lines if line.relation is not None]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _relation(relation: BaseRelation, at: _Box) -> Markup:
    key = ", ".join(relation.columns[i] for i in relation.unique[0]) if relation.unique else ""
    below = f"key {key}" if key else "no key"
    return tag(
        "g",
        tag("title", f"{relation.name}({', '.join(relation.columns)})"),
        tag("rect", x=at.x, y=at.y, width=_BOX, height=_HEIGHT, rx=8),
        tag("text", _short(relation.name), x=at.x + 14, y=at.y + 19, class_="name"),
        tag("text", _short(below), x=at.x + 14, y=at.y + 35, class_="small"),
        class_="relation",
        data_relation=relation.name,
    )


def _view(its: ViewAudit, at: _Box) -> Markup:
    found = word(its.anything.any)
    needed = its.anything.needs
    below = "always" if found == "always" else found
    if needed:
        below += f": reads {' + '.join(needed[0].relations)}" if needed[0].relations else ""
    return tag(
        "g",
        tag("title", f"{its.view.name}: {below}"),
        tag("rect", x=at.x, y=at.y, width=_BOX, height=_HEIGHT, rx=8),
        tag("text", f"{MARKS[found]} {_short(its.view.name)}", x=at.x + 14, y=at.y + 19, class_="name"),
        tag("text", _short(below), x=at.x + 14, y=at.y + 35, class_="small"),
        class_=f"view {found}",
        data_view=its.view.name,
        tabindex="0",
    )


def _reads(its: ViewAudit, places: dict[str, _Box], at: _Box) -> Markup:
    """Lines from what a view reads; marked where a changed row may have to be looked up there."""
    needed = {name for need in its.anything.needs[:1] for name in need.relations}
    lines = []
    for name in dict.fromkeys((*_relations(its), *needed)):
        start = places[name]
        x, end = start.x + _BOX, at.x
        bend = (end - x) * 0.5
        path = f"M{x},{start.middle} C{x + bend},{start.middle} {end - bend},{at.middle} {end},{at.middle}"
        how = "needed" if name in needed else "read"
        lines.append(tag("path", d=path, class_=f"edge {how}", data_view=its.view.name, data_relation=name))
    return joined(*lines)


def _foreign_keys(relation: BaseRelation, places: dict[str, _Box]) -> Markup:
    lines = []
    for reference in relation.references:
        start, end = places[relation.name], places[reference.target]
        depth = min(100, 24 + abs(start.y - end.y) * 0.22)
        x, y, z = start.x, start.middle - 6, end.middle + 6
        path = f"M{x},{y} C{x - depth},{y} {x - depth},{z} {x - 7},{z}"
        tip = f"M{x - 8},{z - 4} L{x},{z} L{x - 8},{z + 4} Z"
        columns = ", ".join(relation.columns[i] for i in reference.columns)
        about = tag("title", f"{relation.name}({columns}) references {reference.target}")
        lines.append(
            tag("g", about, tag("path", d=path, class_="reference"), tag("path", d=tip, class_="tip"))
        )
    return joined(*lines)
