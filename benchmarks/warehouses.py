"""Warehouses of a given size, for measuring how long their audit takes: rules and declarations, without data.

- `departments`: business areas of twelve relations each, a shop with its orders, stock and staff, which share nothing;
  over each some views: copies, joins along foreign keys, filters, self-joins, and views that group.
- `tiny`: many views of two subgoals, each over relations of its own.
- `wide`: one view of many subgoals, a chain.
- `tower`: a view over a view over a view, each of which is stored.
- `joined_with_itself`: one relation joined with itself, and a comparison.
"""

from __future__ import annotations

from random import Random

RELATIONS = {
    "country": ("k", "name:string", "zone:string"),
    "city": ("k", "name:string", "country>country"),
    "store": ("k", "city>city", "kind:string", "size:int"),
    "customer": ("k", "name:string", "city>city", "segment:string", "score:int"),
    "supplier": ("k", "name:string", "city>city", "rating:int"),
    "category": ("k", "name:string", "line:string"),
    "product": ("k", "name:string", "category>category", "supplier>supplier", "price:int"),
    "staff": ("k", "name:string", "store>store", "grade:int"),
    "orders": ("k", "customer>customer", "store>store", "staff>staff", "placed:date", "state:string"),
    "line": ("k", "orders>orders", "product>product", "amount:int", "discount:int"),
    "payment": ("k", "orders>orders", "paid:date", "sum:int", "method:string"),
    "stock": ("k", "store>store", "product>product", "held:int"),
}
"""Relations with their columns: a key, values by type, and references."""

_VALUES = {"int": ("{0} > 100", "{0} <= 40"), "date": ("{0} >= date '2026-01-01'",), "string": ("{0} = 'a'",)}


def departments(views: int, areas: int = 1, *, constrained: bool = True, seed: int = 1) -> str:
    """Some views, spread over areas of twelve relations each."""
    random = Random(seed)
    lines = []
    for area in range(areas):
        mark = f"{area}_" if areas > 1 else ""
        lines += [_declared(name, f"d{mark}", constrained=constrained) for name in RELATIONS]
        for number in range(area, views, areas):
            lines.append(_view(random, f"v{number}", f"d{mark}"))
    return "\n".join(lines) + "\n"


def tiny(views: int) -> str:
    """Views of two subgoals that share nothing."""
    return "".join(f"v{i}(X, Y, Z) :- r{i}(X, Y), s{i}(Y, Z).\n" for i in range(views))


def wide(subgoals: int) -> str:
    """One view, a chain of that many subgoals."""
    head = ", ".join(f"X{i}" for i in range(subgoals + 1))
    return f"v({head}) :- {', '.join(f'r{i}(X{i}, X{i + 1})' for i in range(subgoals))}.\n"


def tower(height: int) -> str:
    """Views over views: each joins the one below with a relation more."""
    lines = ["v0(X0, X1) :- r0(X0, X1)."]
    for i in range(1, height):
        below = ", ".join(f"X{j}" for j in range(i + 1))
        lines.append(f"v{i}({below}, X{i + 1}) :- v{i - 1}({below}), r{i}(X{i}, X{i + 1}).")
    return "\n".join(lines) + "\n"


def joined_with_itself(times: int) -> str:
    """Rows of one relation that follow one another, in order."""
    atoms = ", ".join(f"r(K, X{i}, A{i})" for i in range(times))
    head = ", ".join(["K", *(f"X{i}, A{i}" for i in range(times))])
    tests = ", ".join(f"X{i} < X{i + 1}" for i in range(times - 1))
    return f".decl r(k: int not null, x: int not null, a: int not null).\nv({head}) :- {atoms}, {tests}.\n"


def _declared(name: str, mark: str, *, constrained: bool) -> str:
    columns, foreign = [], []
    for column in RELATIONS[name]:
        plain, _, target = column.partition(">")
        plain, _, kind = plain.partition(":")
        columns.append(f"{plain}: {kind or 'int'} not null")
        if target:
            foreign.append(f" foreign({plain}) references {mark}{target}(k)")
    constraints = " key(k)" + "".join(foreign) if constrained else ""
    return f".decl {mark}{name}({', '.join(columns)}){constraints}."


def _view(random: Random, name: str, mark: str) -> str:
    """A view of one to four relations that reference one another."""
    kind = random.choice(("copy", "join", "join", "filter", "filter", "filter", "group", "group", "self"))
    atoms: list[tuple[str, dict[str, str]]] = []
    start = random.choice([n for n in RELATIONS if kind == "copy" or any(">" in c for c in RELATIONS[n])])
    _add(atoms, start, {})
    for _ in range(0 if kind in ("copy", "self") else random.randint(1, 3)):
        open_ = [
            (target, terms[column.partition(">")[0]])
            for relation, terms in atoms
            for column in RELATIONS[relation]
            if (target := column.partition(">")[2]) and target not in [other for other, _ in atoms]
        ]
        if open_:
            target, term = random.choice(open_)
            _add(atoms, target, {"k": term})
    if kind == "self":
        shared = next(c.partition(">")[0] for c in RELATIONS[start] if ">" in c)
        _add(atoms, start, {shared: atoms[0][1][shared]})
    tests = _tests(random, atoms) if kind in ("filter", "group") else ""
    body = ", ".join(f"{mark}{relation}({', '.join(terms.values())})" for relation, terms in atoms) + tests
    variables = list(dict.fromkeys(term for _, terms in atoms for term in terms.values()))
    if kind == "group":
        numbers = [terms[c.partition(":")[0]] for r, terms in atoms for c in RELATIONS[r] if ":int" in c]
        measures = [f"{random.choice(('sum', 'max'))}({n})" for n in numbers[:1]]
        groups = [t for _, terms in atoms[-1:] for t in list(terms.values())[:2]]
        return f"{name}({', '.join([*groups, 'count(*)', *measures])}) :- {body}."
    return f"{name}({', '.join(variables)}) :- {body}."


def _add(atoms: list[tuple[str, dict[str, str]]], relation: str, given: dict[str, str]) -> None:
    number = len(atoms)
    names = [column.partition(">")[0].partition(":")[0] for column in RELATIONS[relation]]
    atoms.append((relation, {n: given.get(n, f"{n.capitalize()}{number}") for n in names}))


def _tests(random: Random, atoms: list[tuple[str, dict[str, str]]]) -> str:
    relation, terms = random.choice(atoms)
    typed = [column.split(":") for column in RELATIONS[relation] if ":" in column]
    column, kind = random.choice(typed)
    return ", " + random.choice(_VALUES[kind]).format(terms[column])
