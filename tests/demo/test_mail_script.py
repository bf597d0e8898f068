"""The scripted provider: what a script says, and that its log keeps keys across restarts."""

import json
from pathlib import Path

import pytest

from winecellar.demo.mail_api import Taken
from winecellar.demo.mail_script import WELL, Behaviour, Script, read


def test_a_script_is_handed_out_in_order_and_then_all_is_well() -> None:
    script = Script("503:7, hang:2*2, ok")
    assert [script.next() for _ in range(6)] == [
        Behaviour("503", 7.0),
        Behaviour("hang", 2.0),
        Behaviour("hang", 2.0),
        WELL,
        WELL,
        WELL,
    ]
    assert (Behaviour("503").status, WELL.status) == (503, None)


def test_a_brownout_lasts_for_its_time_and_not_for_so_many_requests() -> None:
    now = 100.0
    script = Script("ok, brownout:30, 500", hangs=8.0, clock=lambda: now)
    assert script.next() == WELL
    assert [script.next() for _ in range(5)] == [Behaviour("hang", 8.0)] * 5
    now = 131.0
    assert [script.next() for _ in range(2)] == [Behaviour("500"), WELL]


@pytest.mark.parametrize("text", ["nonsense", "200", "hang:x", "ok*", "600"])
def test_what_is_no_behaviour_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="is no behaviour; there are"):
        read(text)


def test_a_key_is_taken_once_also_by_the_providers_next_process(tmp_path: Path) -> None:
    log = tmp_path / "taken.jsonl"
    first = Taken(log)
    assert first.take("key-1", b"{}", {"to": ["a"]})
    assert first.take("key-1", b"{}", {"to": ["a"]}), "the same again is answered alike"
    assert not first.take("key-1", b"{ }", {"to": ["b"]})
    again = Taken(log)
    assert again.take("key-1", b"{}", {})
    assert not again.take("key-1", b"other", {})
    assert [json.loads(line)["key"] for line in log.read_text().splitlines()] == ["key-1"]
