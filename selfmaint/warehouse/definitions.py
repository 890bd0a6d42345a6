"""From rules as they are written to views: lower views unfolded, equalities applied, one subgoal for each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Declaration,
    IsNull,
    Literal,
    NullTest,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    Semantics,
    Term,
    Variable,
    ViewDefinition,
    apply_rule,
    block,
    implied_groups,
    variables_of,
)
from datalog.order import normalise
from datalog.rewrite import Beyond, MoreThanRules, guard_joins, plain_rules, propagate_equalities, unfold
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.base_relations import BaseRelation, certain_variables, variable_types
from selfmaint.warehouse.constraints import given_subgoal, merged_by_keys
from selfmaint.warehouse.doubles import hold_alike, joined_as_double, too_close
from selfmaint.warehouse.emptiness import impossible, unfitting
from selfmaint.warehouse.grouped import SOME_ROWS
from selfmaint.warehouse.views import Limitation, Outside, View

NOT_YET = ": deciding that is not supported yet"
"""What is said of a view that is more than rules until something is found that decides it."""


def separated(program: Program, opaque: tuple[OpaqueView, ...]) -> tuple[Program, dict[str, View]]:
    """The program with the definitions that are just rules as rules, and the other views by name."""
    rules = list(program.rules)
    beyond: dict[str, View] = {}
    for written in program.views:
        found = plain_rules(written, program.declarations)
        one = with_null_filters(written, program.declarations)
        if one is not written and isinstance(found, tuple) and len(found) == 1:
            found = MoreThanRules(Beyond.COMPUTED, f"`{one.name}` has an `is null` condition")
        has_constants = any(its.is_constant for its in one.blocks)
        if has_constants and isinstance(found, tuple):
            found = MoreThanRules(Beyond.COMPUTED, f"`{one.name}` has rows that are written in it")
        if isinstance(found, MoreThanRules):
            text = f"{found.text}{NOT_YET}"
            limited = limited_view(one, one.columns, Limitation(Outside(found.kind.value), text))
            beyond[one.name] = replace(
                limited, grouping=None if has_constants else _grouping(one, found.kind)
            )
        else:
            rules.extend(found)
    for view in opaque:
        beyond[view.name] = limited_view(
            view, view.columns, Limitation(Outside.OPAQUE, "; ".join(view.reasons))
        )
    return replace(program, rules=tuple(rules), views=()), beyond


def with_null_filters(definition: ViewDefinition, declarations: Iterable[Declaration] = ()) -> ViewDefinition:
    """A view whose `is null` tests are filters: conditions on the core's rows, as the decision takes OR and LIKE.

    Tests of what can not be null stay, for then the view has no rows.

    >>> from datalog.model import Predicate, Variable, block
    >>> x, y = Variable("X"), Variable("Y")
    >>> core = block("v", 0, [Atom(Predicate("r"), (x, y)), NullTest(y, negated=False)], [x])
    >>> found = with_null_filters(ViewDefinition("v", ("x",), (core,))).blocks[0]
    >>> len(found.core.body), found.filters == (IsNull(y),)
    (1, True)
    """
    known = {declaration.name: declaration for declaration in declarations}

    def may_be_null(term: Term, atoms: Iterable[Atom]) -> bool:
        places = [(atom.predicate.name, i) for atom in atoms for i, t in enumerate(atom.terms) if t == term]
        return len(places) == 1 and all(n not in known or not known[n].is_not_null(i) for n, i in places)

    tests = {
        number: [
            literal
            for literal in its.core.body
            if isinstance(literal, NullTest)
            and not literal.negated
            and may_be_null(literal.term, its.core.atoms)
        ]
        for number, its in enumerate(definition.blocks)
    }
    if not any(tests.values()):
        return definition
    blocks = (
        block(
            definition.name,
            number,
            [literal for literal in its.core.body if literal not in tests[number]],
            its.outputs,
            filters=(*its.filters, *(IsNull(test.term, span=test.span) for test in tests[number])),
            groups=its.groups,
            having=its.having,
        )
        for number, its in enumerate(definition.blocks)
    )
    return replace(definition, blocks=tuple(blocks))


def _grouping(definition: ViewDefinition, kind: Beyond) -> ViewDefinition | None:
    """The definition of a view's rows as groups, if it has one block."""
    if kind is Beyond.AGGREGATE:
        return definition
    counted = kind is Beyond.BAG and definition.semantics is Semantics.BAG
    return grouping(definition, counted=counted)


def limited_view(
    definition: ViewDefinition | OpaqueView, columns: tuple[str, ...], limitation: Limitation
) -> View:
    """A view that is more than rules: its stored rows, and the relations below."""
    head = Atom(Predicate(definition.name), tuple(Variable(f"C{i}") for i, _ in enumerate(columns)))
    blocks = definition.blocks if isinstance(definition, ViewDefinition) else ()
    atoms = tuple(dict.fromkeys(atom for block in blocks for atom in block.core.atoms))
    rule = Rule(head, atoms, definition.span)
    none: frozenset[Variable] = frozenset()
    return View(
        definition.name, rule, head, atoms, none, none, columns, limitation=limitation, definition=definition
    )


def unfolded_rules(program: Program) -> dict[str, list[tuple[Rule, Rule]]]:
    """For each view its rules, as written and with views over views unfolded and equalities applied."""
    definitions = {p: program.rules_for(p) for p in program.heads}
    inline = {p: guard_joins(rules[0]) for p, rules in definitions.items() if len(rules) == 1}
    result: dict[str, list[tuple[Rule, Rule]]] = {}
    for rule in program.rules:
        if not rule.body:
            raise InputError([_fact(rule)])
        plain = guard_joins(rule)
        while used := [a.predicate for a in plain.atoms if a.predicate in inline]:
            goal = Predicate("", plain.head.predicate.version)
            moved = Rule(Atom(goal, plain.head.terms), plain.body, plain.span)
            unfolded = unfold(Program((moved,)), {p: inline[p] for p in used}).rules
            if not unfolded:
                break
            plain = guard_joins(
                Rule(Atom(rule.head.predicate, unfolded[0].head.terms), unfolded[0].body, rule.span)
            )
        result.setdefault(rule.head.predicate.name, []).append((rule, propagate_equalities(plain)))
    return result


def _fact(rule: Rule) -> Diagnostic:
    return Diagnostic(
        Code.VIEW_OVER_VIEW,
        f"`{rule.head.predicate}` is defined by a fact, which no view can be",
        rule.span,
        "no body",
        hint="put rows into the view's contents or the update, not into the program",
    )


def view_of(
    program: Program,
    name: str,
    rules: list[tuple[Rule, Rule]],
    relations: Mapping[str, BaseRelation],
    views: Mapping[str, list[Rule]],
) -> View:
    """One view."""
    declaration = program.declaration(name)
    columns = declaration.column_names if declaration else _column_names(rules[0][0].head)
    reasons = [_never(plain, relations, views) for _, plain in rules]
    possible = [rule for rule, never in zip(rules, reasons, strict=True) if never is None]
    if not possible:
        never = f"`{name}` can have no rows: {'; '.join(r for r in dict.fromkeys(reasons) if r)}"
        (written, plain), none = rules[0], frozenset[Variable]()
        return View(name, written, plain.head, (), none, none, columns, always_empty=never)
    limitation = _limitation(name, possible, views, relations)
    written, plain = possible[0]
    reduced = None if too_close(plain, relations) else _reduced(plain, relations)
    rule, comparisons = (plain, ()) if reduced is None else reduced
    body = tuple(dict.fromkeys(rule.atoms))
    guarded = {li.term for li in rule.body if isinstance(li, NullTest) and li.negated}
    not_null = frozenset(t for t in guarded if isinstance(t, Variable)).union(variables_of(comparisons))
    certain = certain_variables(body, relations)
    view = View(name, written, rule.head, body, not_null, certain, columns, comparisons, limitation)
    return view if limitation is not None else _projecting(view, relations)


def _projecting(view: View, relations: Mapping[str, BaseRelation]) -> View:
    """The view, or if not all that it joins is in its head, what is needed of it, with that as its limitation."""
    if not _projected_out(view):
        return view
    view = without_references(view, view.head.terms, relations)
    missing = _projected_out(view)
    if not missing:
        return view
    used = [v for v in missing if not v.name.startswith("_")]  # of SQL's
    named = dict.fromkeys(f"`{_shown(v, view.body, relations)}`" for v in used)
    others = dict.fromkeys(f"`{a.predicate}`" for a in view.body if not set(missing).isdisjoint(a.terms))
    what = ", ".join(named) or f"columns of {', '.join(others)}"
    text = f"`{view.name}` projects out {what}: shown, it would be decided exactly"
    return replace(view, limitation=Limitation(Outside.PROJECTION, text))


def _shown(variable: Variable, body: Sequence[Atom], relations: Mapping[str, BaseRelation]) -> str:
    """A column that a variable is named for, as SQL's are, with its relation; else the variable's name."""
    for atom in body if len(variable.name) > 1 else ():
        for term, column in zip(atom.terms, relations[atom.predicate.name].columns, strict=True):
            if term == variable and _root(variable.name) == _root(column):
                return f"{atom.predicate}.{column}"
    return variable.name


def _root(name: str) -> str:
    """A name without what makes it another one than others."""
    return name.lower().rstrip("_0123456789")


def _projected_out(view: View) -> list[Variable]:
    return [v for v in variables_of(view.body) if v not in view.head.terms]


def without_references(view: View, used: Iterable[Term], relations: Mapping[str, BaseRelation]) -> View:
    """A view of one rule without the subgoals of which foreign keys say that each match has one row of them."""
    used = frozenset(used)
    while True:
        tested = variables_of(view.filters)  # more, without a subgoal that implied a test
        given = given_subgoal(view.body, used.union(tested), relations, view.not_null | view.certain)
        if given is None:
            return view
        body = tuple(atom for atom in view.body if atom != given)
        view = replace(view, body=body, certain=certain_variables(body, relations))


def _reduced(rule: Rule, relations: Mapping[str, BaseRelation]) -> tuple[Rule, tuple[Comparison, ...]] | None:
    """The rule with what keys and comparisons make equal made equal, and its comparisons; None if it has no rows."""
    while True:
        atoms = tuple(dict.fromkeys(rule.atoms))
        guarded = {li.term for li in rule.body if isinstance(li, NullTest) and li.negated}
        not_null = certain_variables(atoms, relations) | {t for t in guarded if isinstance(t, Variable)}
        merged = merged_by_keys(atoms, relations, not_null)
        if merged is None:
            return None
        if merged:
            rule = apply_rule(merged, rule)
            if impossible(rule):
                return None
            continue
        comparisons = [li for li in rule.body if isinstance(li, Comparison)]
        form = normalise(comparisons, variable_types(atoms, relations))
        if form is None:
            return None
        if not form.equal:
            others = tuple(li for li in rule.body if not isinstance(li, Comparison))
            more = (NullTest(v) for v in form.not_null)
            return replace(rule, body=tuple(dict.fromkeys((*others, *more)))), form.comparisons
        others = tuple(li for li in rule.body if not isinstance(li, Comparison))
        more = (NullTest(v) for v in form.not_null)
        kept = replace(rule, body=(*others, *form.comparisons, *more, *(NullTest(v) for v in form.equal)))
        rule = apply_rule(form.equal, kept)
        rule = replace(rule, body=tuple(dict.fromkeys(li for li in rule.body if not _is_trivial(li))))


def _is_trivial(literal: Literal) -> bool:
    return (
        isinstance(literal, NullTest)
        and literal.negated
        and isinstance(literal.term, Constant)
        and literal.term.value is not None
    )


def _never(rule: Rule, relations: Mapping[str, BaseRelation], views: Mapping[str, list[Rule]]) -> str | None:
    """Why a rule gives no row on any database; None if it may give one, as far as that is found out."""
    evident = impossible(rule) or _unmatched(rule, views) or unfitting(rule, relations)
    if evident is None and not too_close(rule, relations) and _reduced(rule, relations) is None:
        return "a key or comparisons rule them out"
    return evident


def _unmatched(rule: Rule, views: Mapping[str, list[Rule]]) -> str | None:
    """A view of one rule that is left in a body after unfolding has no row that fits."""
    for atom in rule.atoms:
        if len(views.get(atom.predicate.name, ())) == 1:
            return f"it reads the view `{atom.predicate.name}`, of which no row fits"
    return None


def rules_by_name(program: Program) -> dict[str, list[Rule]]:
    """The rules of every view."""
    found: dict[str, list[Rule]] = {}
    for rule in program.rules:
        found.setdefault(rule.head.predicate.name, []).append(rule)
    return found


def _limitation(
    name: str,
    rules: list[tuple[Rule, Rule]],
    views: Mapping[str, list[Rule]],
    relations: Mapping[str, BaseRelation],
) -> Limitation | None:
    if len(rules) > 1 and not hold_alike([plain for _, plain in rules], relations):
        text = f"`{name}` is a union with numbers of several types in a column, some of which are one there"
        return Limitation(Outside.COMPARISON, text)
    if len(rules) > 1:
        return Limitation(Outside.UNION, f"`{name}` is a union of {len(rules)} rules")
    rule = rules[0][1]
    joined = joined_as_double(rule, relations)
    if joined is not None:
        text = f"`{name}` joins by `{joined.name}` numbers of two types, several of which are one as doubles"
        return Limitation(Outside.COMPARISON, text)
    if too_close(rule, relations):
        return Limitation(Outside.COMPARISON, f"`{name}` compares with numbers that are one as doubles")
    for literal in rule.body:
        match literal:
            case Atom() if literal.predicate.name in views:
                if not views[literal.predicate.name]:
                    return Limitation(
                        Outside.OTHER,
                        f"`{name}` reads the view `{literal.predicate.name}`, which is more than a rule",
                    )
                return Limitation(
                    Outside.OTHER, f"`{name}` reads the view `{literal.predicate.name}`, a union"
                )
            case Atom() | NullTest(negated=True) | Comparison():
                continue
            case _:
                return Limitation(Outside.OTHER, f"`{name}` has a negation or an `is null` test")
    return None


def _column_names(head: Atom) -> tuple[str, ...]:
    names = [t.name.lower() if isinstance(t, Variable) else f"c{i}" for i, t in enumerate(head.terms)]
    repeated = {n for n, times in Counter(names).items() if times > 1}
    return tuple(f"{n}_{i}" if n in repeated else n for i, n in enumerate(names))


def grouping(definition: ViewDefinition, *, counted: bool) -> ViewDefinition | None:
    """The definition of a view's distinct rows as groups of core rows; None if it has several blocks, or groups.

        SELECT a, b FROM r                 keeps duplicates
        SELECT a, b, count(*) FROM r GROUP BY a, b           the same rows, each once with its number of copies

    So the stored rows of a bag *are* the groups with their counts: wherever rows of such a view are read they are
    *counted rows*, each distinct row once, with its number of copies, at least 1, as a last column. A view whose
    rows stand once groups likewise, without the count.

    Conditions of soundness:

    1. The number of copies of a row is the number of core rows that it comes from: the core is a set, since
       relations are.
    2. Of a view that removes duplicates, or whose columns determine their core row by keys, each group is one row.

    With `counted` the number of copies of each row is the last column.

    >>> from datalog.model import Atom, Predicate, Variable, block
    >>> from datalog.syntax import show
    >>> x, y = Variable("X"), Variable("Y")
    >>> bag = ViewDefinition("v", ("x",), (block("v", 0, [Atom(Predicate("r"), (x, y))], [x]),))
    >>> print(show(grouping(bag, counted=True)))
    .view v(x, copies) bag.
    v(X, count(*)) :- r(X, Y).
    """
    if len(definition.blocks) != 1 or definition.is_grouped:
        return None
    (block,) = definition.blocks
    groups = implied_groups(block.outputs)
    more = (Aggregate(AggregateFunction.COUNT),) if counted else ()
    made = replace(
        block, outputs=(*block.outputs, *more), groups=groups, having=() if groups else (SOME_ROWS,)
    )
    columns = (*definition.columns, *([_copies_column(definition)] if counted else []))
    return replace(definition, columns=columns, blocks=(made,), semantics=Semantics.BAG)


def _copies_column(definition: ViewDefinition) -> str:
    """The name of the column of counted rows that holds the number of copies: `copies`, or longer if it is taken."""
    taken = {column.casefold() for column in definition.columns}
    name = "copies"
    while name in taken:
        name += "_"
    return name
