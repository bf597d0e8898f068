"""Chat and push services: only those whose server stands in Apprise's code, whatever an address says."""

from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from alerts.channels import vendors
from alerts.channels.vendors import SERVICES, RefusedServiceError, read_address, send

GOOD = {
    "discord": "discord://4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js",
    "ntfy": "ntfy://my-wines",
    "pbul": "pbul://abcdefghijklmnopqrstuvwxyz012345",
    "pover": "pover://user1234567890123456789012345@token123456789012345678901234",
    "prowl": "prowl://0123456789abcdef0123456789abcdef01234567",
    "slack": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/wines",
    "tgram": "tgram://123456789:abcdefg_hijklmnop/12315544",
}


def test_each_service_is_tried_below() -> None:
    assert set(GOOD) == set(SERVICES)


@pytest.mark.parametrize("scheme", sorted(GOOD))
def test_a_service_speaks_to_its_own_host_alone_by_https_and_follows_nobody(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []

    def send_nothing(self: Any, request: Any, **options: Any) -> requests.Response:
        parts = urlsplit(request.url)
        seen.append((parts.scheme, parts.hostname or ""))
        assert options["verify"], "certificates are checked"
        answer = requests.Response()
        answer.status_code, answer.request, answer.url = 302, request, request.url
        answer.headers["Location"] = "http://169.254.169.254/latest"
        answer._content = b"{}"
        return answer

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", send_nothing)
    assert read_address(GOOD[scheme]) == SERVICES[scheme][0]
    assert not send(GOOD[scheme], title="a wine", text="https://cellar.example/wines/wn_1")
    assert seen
    assert {protocol for protocol, _ in seen} == {"https"}
    assert {host for _, host in seen} <= SERVICES[scheme][1]


@pytest.mark.parametrize(
    "address",
    [
        *(
            "file:///etc/passwd",
            "syslog://",
            "dbus://",
            "json://10.0.0.1/",
            "jsons://internal.example/",
            "xml://10.0.0.1",
        ),
        *("mailto://user:pass@example.org", "gotify://127.0.0.1/token", "matrix://user:pass@10.0.0.1", "exec://x"),
        *("ntfy://10.0.0.1/topic", "ntfys://ntfy.example.org/topic", "ntfy://user:pass@127.0.0.1:8080/topic"),
        *(f"{GOOD['discord']}?template=/etc/passwd", f"{GOOD['discord']}?verify=no", f"{GOOD['tgram']}?rto=99999"),
        *(f"{GOOD['slack']}?redirect=yes", "discord://", "tgram://x", "tgram", "", "DISCORD://1/2", "discord://1/2\n"),
    ],
)
def test_whatever_could_reach_a_host_of_ours_or_read_a_file_is_refused(address: str) -> None:
    with pytest.raises(RefusedServiceError):
        read_address(address)


def test_without_apprise_a_service_is_refused_in_words_and_one_there_is_fails_quietly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vendors, "installed", None)
    with pytest.raises(RefusedServiceError, match="cannot be reached from this site"):
        read_address(GOOD["discord"])
    assert not send(GOOD["discord"], title="", text="")
