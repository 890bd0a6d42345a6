"""GROUP BY: which sets of expressions ROLLUP, CUBE and GROUPING SETS group by."""

from __future__ import annotations

from itertools import product

from sqlglot import exp


def sets_of(node: exp.Expr) -> list[list[exp.Expr]]:
    """The grouping sets of ROLLUP, CUBE or GROUPING SETS; of anything else it is one."""
    parts = [leaves_of(one) for one in node.expressions]
    match node:
        case exp.GroupingSets():
            return [some for one in node.expressions for some in sets_of(one)]
        case exp.Rollup():
            chosen = [parts[:number] for number in range(len(parts), -1, -1)]
        case exp.Cube():
            chosen = [
                [part for part, is_in in zip(parts, way, strict=True) if is_in]
                for way in product((True, False), repeat=len(parts))
            ]
        case _:
            return [leaves_of(node)]
    return [[leaf for part in some for leaf in part] for some in chosen]


def leaves_of(node: exp.Expr) -> list[exp.Expr]:
    """What is grouped by inside ROLLUP, CUBE or GROUPING SETS."""
    if isinstance(node, exp.Tuple | exp.GroupingSets | exp.Rollup | exp.Cube):
        return [leaf for one in node.expressions for leaf in leaves_of(one)]
    if isinstance(node, exp.Paren):
        return leaves_of(node.this)
    return [node]
