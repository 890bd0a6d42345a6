"""Following a server's log. Oracle: the views' own SQL, run by PostgreSQL after each transaction."""

from __future__ import annotations

import pytest

from tests.effort import effort
from tests.follow.shops import LoggedShop, Writer

pytestmark = pytest.mark.usefixtures("postgres")


def test_the_views_follow_the_log(shop: LoggedShop) -> None:
    shop.made()
    assert shop.stored() == shop.expected()
    shop.execute("insert into shop.sale values (10, 4, 7, 1, now(), true, 0.5, 'today', 'new', null, null)")
    shop.execute("update shop.sale set amount = 3, note = note || '!'", "delete from shop.sale where id = 2")
    shop.execute("insert into shop.other values (1)")
    first, *rest = shop.steps("--verify")
    assert (first["transactions"], first["changes"], rest) == (2, 6, [])
    assert shop.stored() == shop.expected()
    assert shop.steps()[0]["transactions"] == 0
    shop.execute("update shop.sale set amount = 4 where id = 10")
    (examined,) = shop.steps("--cross-examine")
    assert {one["cross_examined"]["outcome"] for one in examined["verdicts"]} == {"agrees"}, examined
    assert shop.stored() == shop.expected()


@pytest.mark.parametrize("seed", [0])
def test_each_state_of_the_lake_is_that_after_its_transaction_though_the_source_is_ahead(
    hard: LoggedShop, seed: int
) -> None:
    hard.made()
    writer = Writer(hard, seed)
    states = [hard.expected()]
    for _ in range(effort(10, 60)):
        writer.transaction()
        state = hard.expected()
        states.append(state)
    writer.close()
    steps = hard.steps("--transactions", "1")
    assert hard.stored() == hard.expected()
    assert any(step["reads"] for step in steps[:-1]), "no base relation was read while the source was ahead"
    at = 0
    for step in steps:
        found = hard.stored(step["snapshot"])
        assert found in states[at:], f"the state after {step['position']} is none of the source's"
        at += states[at:].index(found)
