"""What the terminal says: once for each price and mail, in words."""

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from rich.console import Console

from winecellar.demo.mail_log import MailTaken
from winecellar.demo.screen import LiveScreen, Names, PlainScreen, mail_line, open_screen
from winecellar.demo.tally import PriceTaken, Receipt, Totals

AT = datetime(2030, 5, 17, 9, 30, 1, 250_000, tzinfo=UTC)
NAMES = Names({"wn_4417": "Ch. Montrose 2016"}, {"mch_082": "Quenby & Ostler"})


def price(new="161.50", event_id="evt_1", reason=None):
    return PriceTaken("wn_4417", "mch_082", Decimal("189.00"), Decimal(new), False, event_id, reason)


def receipt(*prices, nightly=False):
    return Receipt("mch_082", prices, AT, nightly)


def mail(after_ms):
    return MailTaken(AT + timedelta(milliseconds=after_ms), 7, "evt_1", "<x>", "dana@x.example", "Montrose is $161.50")


def test_a_price_says_wine_merchant_old_new_and_the_difference():
    (line,) = NAMES.lines(receipt(price()))
    assert (line.what, line.who, line.figures) == ("Ch. Montrose 2016", "Quenby & Ostler", "$189.00 → $161.50 -14.6 %")


def test_a_nightly_refresh_is_one_line():
    confirmed = price(new="189.00", event_id=None, reason="unchanged")
    (line,) = NAMES.lines(receipt(price(), confirmed, confirmed, nightly=True))
    assert (line.what, line.who, line.figures) == ("nightly refresh", "Quenby & Ostler", "3 prices, 1 changed")


def test_a_price_that_changed_nothing_says_so():
    lines = NAMES.lines(receipt(price("189.00", None, "unchanged"), price("9000.00", None, "held")))
    assert [line.figures for line in lines] == ["$189.00 as before", "$9,000.00 held for a person"]


def test_an_alert_says_how_long_after_the_202_it_was_handed_over():
    assert mail_line(mail(34), AT).figures == "34 ms"
    assert mail_line(mail(-3), AT).figures == "0 ms"
    assert mail_line(mail(34), None).figures == "first check"


def test_plain_lines_are_in_order_of_time():
    said = []
    PlainScreen(said.append).show(NAMES.lines(receipt(price())), [mail_line(mail(34), AT)], Totals(), 1)
    assert said == [
        "09:30:01.250  price  Ch. Montrose 2016 · Quenby & Ostler · $189.00 → $161.50 -14.6 %",
        "09:30:01.284  MAIL   Montrose is $161.50 → dana@x.example · 34 ms",
    ]


def test_a_file_gets_plain_lines_and_a_terminal_a_table_that_fits_it():
    assert isinstance(open_screen(Console(file=io.StringIO()), print), PlainScreen)
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=100, height=30, color_system=None)
    screen = open_screen(console, print)
    assert isinstance(screen, LiveScreen)
    lines = NAMES.lines(receipt(*[price()] * 80))
    screen.show(lines, [mail_line(mail(34), AT)], Totals(sent=80, accepted=80, events=80), 1)
    screen.close()
    text = output.getvalue()
    assert "Prices going in" in text
    assert "Alerts going out" in text
    assert "80 prices sent" in text
    assert text.count("Ch. Montrose 2016") < 30, "only what fits"
