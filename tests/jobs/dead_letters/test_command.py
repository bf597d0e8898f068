"""`manage.py dead_letters`: the same acts as the admin, with a dry run, machine-readable answers and progress."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs.dead_letters.cli import Answers
from jobs.models import AuditEntry, DeadLetter, Redrive
from tests.jobs.dead_letters.conftest import letter

pytestmark = pytest.mark.django_db
BY = ("--by", "on-call", "--note", "duplicates of a test")


def run(*words: str) -> str:
    out = StringIO()
    call_command("dead_letters", *words, stdout=out, stderr=StringIO())
    return out.getvalue()


def run_json(*words: str) -> Any:
    return json.loads(run("--json", *words))


def test_groups_list_and_show_tell_what_there_is_for_people_and_for_programs() -> None:
    one = letter(1)
    letter(2)
    assert "2 of 2 wait  price-history" in run("groups")
    [group] = run_json("groups")
    assert (group["waiting"], group["some_origins"]) == (2, ["mch_082"])
    assert [row["event_id"] for row in run_json("list", "--origin", "mch_082")] == ["evt_2", "evt_1"]
    assert "new_price_usd: missing" in run("show", str(one.pk))
    assert run_json("show", str(one.pk))["receive_count"] == 1


def test_a_dry_run_says_what_would_be_done_and_does_nothing() -> None:
    letter(1)
    assert "Discard: 1 letters wait. Nothing was done." in run("discard", "--origin", "mch_082", "--dry-run")
    told = run_json("redrive", "--origin", "mch_082", "--dry-run")
    assert (told["would_pass"], told["would_fail"], told["because"][0]["count"]) == (0, 1, 1)
    assert DeadLetter.objects.get().decision == ""
    assert not Redrive.objects.exists()


def test_an_act_by_command_is_on_the_audit_log_like_any_other() -> None:
    one = letter(1)
    assert run_json("discard", "--ids", str(one.pk), *BY) == {"action": "discard", "letters": 1, "left_out": 0}
    entry = AuditEntry.objects.filter(letter_ids__contains=[one.pk]).get()
    assert (entry.by, entry.action, entry.note) == ("on-call", "discard", "duplicates of a test")
    assert run_json("reopen", "--ids", str(one.pk), *BY)["letters"] == 1


def test_a_command_goes_on_until_all_are_done_in_portions(settings: Any) -> None:
    settings.DECISION_MOST = 2
    first = [letter(n) for n in range(5)]
    assert run_json("comment", "--origin", "mch_082", *BY)["letters"] == 5
    assert run_json("discard", "--origin", "mch_082", *BY)["letters"] == 5
    for action in ("comment", "discard"):
        acts = AuditEntry.objects.filter(action=action, letter_ids__overlap=[one.pk for one in first])
        assert sorted(len(act.letter_ids) for act in acts) == [1, 2, 2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["discard", "--origin", "m"], "by: say who"),
        (["discard", "--origin", "m", "--by", "x"], "note: say why"),
        (["discard", *BY], "selection: choose letters"),
        (["discard", "--ids", "x", *BY], "ids: 'x' is not understood"),
        (["list", "--since", "yesterday"], "since: 'yesterday' is not understood"),
        (["redrive", "--origin", "mch_082", "--rate-per-second", "0", *BY], "rate: must be 1 to 1000"),
        (["show", "0"], "there is no dead letter 0"),
        (["progress", "0"], "there is no redrive 0"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(words: list[str], why: str) -> None:
    letter(1)
    with pytest.raises(CommandError, match=why):
        run(*words)
    assert DeadLetter.objects.get().decision == ""


def test_progress_is_told_until_the_redrive_ends() -> None:
    letter(1)
    number = run_json("redrive", "--origin", "mch_082", *BY)["redrive"]
    said: list[str] = []
    told: list[str] = []

    def time_passes(_: float) -> None:
        from jobs.dead_letters import redrive

        redrive.step(number)

    Answers(False, said.append, told.append, time_passes).run("progress", {"redrive": number}, None)  # type: ignore[arg-type]
    assert told == ["0 of 1: 1 queued", "1 of 1: 1 refused"]
    assert said == ["1 of 1: 1 refused: done."]
