"""The crash-point sweep over a week of digests: whatever statement or COMMIT its process dies at, the next run makes up
the rest, and in the end each person has one digest and one command, and nobody two or none."""

import pytest
from django.db import connection

from alerts.models import Digest, DigestWeek
from jobs.models import LoggedMessage
from tests.alerts.digest_cast import fell, make, watcher
from tests.faults import page
from tests.faults.crash import Points, sweep

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
PEOPLE = 5


def test_a_week_dies_at_every_point(settings: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    settings.DIGEST_CHUNK = 2  # type: ignore[attr-defined]
    fell()
    people = {watcher(f"p{number}").user_id for number in range(PEOPLE)}

    def prepare() -> None:
        Digest.objects.all().delete()
        DigestWeek.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE jobs_message, jobs_delivery")

    def act(points: Points) -> None:
        make()

    def each_digest_has_its_command() -> None:
        made = set(Digest.objects.values_list("pk", flat=True))
        asked = [message.body["digest_id"] for message in LoggedMessage.objects.filter(type="send_digest_email")]
        assert sorted(asked) == sorted(made)

    def recover() -> None:
        make()

    def everybody_has_one(where: str) -> None:
        each_digest_has_its_command()
        assert sorted(Digest.objects.values_list("user_id", flat=True)) == sorted(people), where

    points = sweep(
        prepare=prepare,
        act=act,
        check_after_crash=each_digest_has_its_command,
        recover=recover,
        check_end=everybody_has_one,
    )
    with capsys.disabled():
        print(f"\ncrash points: a week of digests: {points}")
    page.hold("a week of digests", points)
