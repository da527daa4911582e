"""What is derived comes after what it was derived from, also where tables read one another."""

from itertools import permutations, product
from random import Random

import pytest

from lakewarden.jobs.rollback.plan.waves import waves_of


@pytest.mark.parametrize("names", tuple(permutations("abc")), ids="".join)
def test_what_was_derived_from_a_circle_comes_after_the_table_it_read(names: tuple[str, ...]) -> None:
    first, second, derived = names
    waves = waves_of({first: [second], second: [first], derived: [first]})
    assert waves[derived] > waves[first]


@pytest.mark.parametrize("seed", range(50))
def test_only_tables_that_read_one_another_come_before_what_they_read(seed: int) -> None:
    random = Random(seed)
    names = random.sample("abcdefgh", random.randint(2, 8))
    upstream = {one: random.sample(names, random.randint(0, min(2, len(names)))) for one in names}
    upstream = {one: [other for other in of if other != one] for one, of in upstream.items()}
    waves = waves_of(upstream)
    leads = {(one, of) for one, others in upstream.items() for of in others}
    for _ in names:
        leads |= {(one, there) for (one, of), (here, there) in product(leads, leads) if of == here}
    for one, others in upstream.items():
        for of in others:
            assert waves[of] < waves[one] or (of, one) in leads, (upstream, waves)
