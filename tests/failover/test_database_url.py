"""What DATABASE_URL may say, above all of several servers."""

from typing import Any

import pytest

from winecellar.database_url import read


@pytest.mark.parametrize(
    ("url", "host", "port", "options"),
    [
        ("postgres://u:p@db/w", "db", "", {}),
        ("postgres://u:p@db:5433/w", "db", 5433, {}),
        ("postgres://u:p@a,b/w", "a,b", "", {"target_session_attrs": "read-write"}),
        ("postgres://u:p@a:5432,b:5433/w", "a,b", "5432,5433", {"target_session_attrs": "read-write"}),
        ("postgres://u:p@[::1]:5432,[::2]:5433/w", "[::1],[::2]", "5432,5433", {"target_session_attrs": "read-write"}),
        ("postgres://u@/w?host=%2Fx,%2Fy", "", "", {"host": "/x,/y", "target_session_attrs": "read-write"}),
        ("postgres://u:p@a,b/w?target_session_attrs=any", "a,b", "", {"target_session_attrs": "any"}),
        ("postgres://u:p,q@db/w", "db", "", {}),
    ],
)
def test_of_several_servers_the_one_that_takes_writes_is_meant(
    url: str, host: str, port: Any, options: dict[str, Any]
) -> None:
    config = read(url)
    assert (config["HOST"], config["PORT"], config["OPTIONS"]) == (host, port, options)
    assert config["NAME"] == "w"


@pytest.mark.parametrize("value", ["true", "True", "{'max_size':1}"])
def test_djangos_own_pool_is_refused_in_words_that_say_what_to_do(value: str) -> None:
    """F12. With connections that are kept it would be an error of Django's at the first query, in every process."""
    with pytest.raises(ValueError, match="DATABASE_URL: take pool away"):
        read(f"postgres://u:p@db/w?pool={value}")


@pytest.mark.parametrize("url", ["postgres://u:p@a,b:5433/w", "postgres://u:p@a:5432,b/w"])
def test_ports_for_some_of_the_hosts_are_refused_in_words(url: str) -> None:
    with pytest.raises(ValueError, match="DATABASE_URL: name a port for each of the hosts, or for none"):
        read(url)
