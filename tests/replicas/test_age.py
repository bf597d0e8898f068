"""How old a replica is at most, whatever the primary wrote, and whenever somebody looked."""

from hypothesis import given
from hypothesis import strategies as st

from winecellar.replicas.age import Age, Verdict

LIMIT = 30.0
# One step: seconds that pass, bytes that the primary writes, and the part of what it lacks that the replica replays.
STEPS = st.lists(
    st.tuples(st.floats(0, 50), st.integers(0, 100), st.sampled_from([0.0, 0.3, 1.0])), min_size=1, max_size=60
)


@given(STEPS)
def test_what_is_young_has_all_that_is_older_than_the_limit_and_what_is_late_lacks_some_of_it(
    steps: list[tuple[float, int, float]],
) -> None:
    age, now, written, replayed = Age(), 0.0, 0, 0
    commits: list[tuple[float, int]] = []
    for seconds, size, part in steps:
        now += seconds
        written += size
        commits.append((now, written))
        replayed += int((written - replayed) * part)
        age.mark(written, now)
        verdict = age.judge(replayed=replayed, now=now, limit=LIMIT)
        lacks = [at for at, position in commits if now - at > LIMIT and position > replayed]
        if verdict is Verdict.YOUNG:
            assert not lacks
        if verdict is Verdict.LATE:
            assert lacks


def test_a_replica_that_keeps_up_is_young_and_one_that_stands_still_is_late_at_the_limit() -> None:
    age = Age()
    verdicts = {}
    for second in range(100):
        age.mark(position=second, at=second)
        verdicts[second] = age.judge(replayed=min(second, 10), now=second, limit=LIMIT)
    assert {verdicts[second] for second in range(41)} == {Verdict.YOUNG}
    assert {verdicts[second] for second in range(42, 100)} == {Verdict.LATE}
    assert age.behind(99) == 89


def test_after_a_quiet_night_the_first_page_does_not_know_and_the_second_does() -> None:
    age = Age()
    age.mark(1, 0.0)
    assert age.judge(replayed=1, now=0.0, limit=LIMIT) is Verdict.YOUNG
    age.mark(9, 30_000.0)
    assert age.judge(replayed=8, now=30_000.0, limit=LIMIT) is Verdict.UNKNOWN
    assert age.judge(replayed=9, now=30_001.0, limit=LIMIT) is Verdict.YOUNG
