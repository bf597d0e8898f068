"""What a file is, told by its beginning, and refused in words where that does not say it."""

import pytest

from tests.catalogues.files import take
from tests.fuzz.run import bounded

CSV = "id,name,price\n1,a,10\n"


@pytest.mark.parametrize(
    "page",
    [
        "<html><body>Please sign in</body></html>",
        "<!DOCTYPE html>\n<html lang='de'>",
        "\n<!-- cached -->\n<!doctype HTML PUBLIC '-//W3C//DTD HTML 4.01//EN'><HTML>",
        "<head><title>Login</title>",
    ],
)
@pytest.mark.parametrize("settings", [{}, {"format": "delimited"}, {"format": "google-xml"}])
def test_a_web_page_is_refused_in_plain_words_whatever_the_settings_say(page, settings):
    fault = take(page, name="list.csv", **settings).fault
    assert fault.reason.startswith("This is a web page and no price list, perhaps the page to sign in.")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"products": []}', "JSON"),
        ('[{"id": 1}]', "JSON"),
        ("<rss version='2.0'><channel/></rss>", "RSS feed without Google's elements"),
        ("<feed xmlns='http://www.w3.org/2005/Atom'/>", "Atom feed without Google's elements"),
        ("<catalog><wine/></catalog>", "begins with <catalog>"),
        ("just a few words\n", "no column for: price, title"),
    ],
)
def test_what_is_no_format_of_ours_is_called_by_its_name(text, why):
    taken = take(text)
    assert taken.rows == []
    assert why in taken.fault.reason


@pytest.mark.parametrize("name", ["", "list.csv", "list.xml", "list.json"])
def test_what_a_file_holds_counts_and_not_what_it_is_called(name):
    assert take(CSV, name=name).format == "delimited"


def test_the_merchants_setting_goes_before_what_a_file_looks_like():
    google = "id,title,price,image_link\n1,a,10,\n"
    assert take(google).format == "google-text"
    assert take(google, format="delimited").format == "delimited"


@pytest.mark.parametrize("before", ["<!-- a -->", "<?b c?>", "<!-- a -->\n<?b?>", "<!--", "<?b", "\n", "<!-- a --> "])
@pytest.mark.parametrize("then", ["", "<", "!", "?>", "< html>", "<catalog/>"])
def test_however_much_stands_before_the_root_it_is_read_once(before, then):
    with bounded():  # seconds of processor; found by fuzzing: thirty comments and no root took for ever
        assert take(before * 3_000 + then, name="list.xml").fault
