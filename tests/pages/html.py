"""A strict reader of our own pages: every tag closed where it belongs, and the promises that no browser checks."""

from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "hr", "img", "source", "wbr", "col"}
INLINE = {"a", "span", "strong", "small", "time", "b", "em"}
HEADINGS = ("h1", "h2", "h3", "h4")
REFERENCES = ("for", "aria-labelledby", "aria-describedby", "aria-controls")

Attributes = dict[str, str]


class Page(HTMLParser):
    """Reads a page and keeps what is wrong with it in `faults`, in words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []
        self.tags: list[tuple[str, Attributes]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        if not text.lower().startswith("<!doctype html>"):
            self.faults.append("no doctype")
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]
        self._check_ids()
        self._check_outline()
        self._check_controls()
        self._check_policy()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in INLINE:
            self.text.append(" ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if "svg" not in self._open:
            self.faults.append(f"<{tag}/> closes itself outside SVG")

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:] or 'nothing'} at line {self.getpos()[0]}")
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if not {"svg", "title"} & set(self._open):
            self.text.append(data)

    @property
    def words(self) -> str:
        """What is read on the page, white space collapsed."""
        return " ".join("".join(self.text).split())

    def all(self, tag: str) -> list[Attributes]:
        return [attributes for name, attributes in self.tags if name == tag]

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if "svg" in self._open:
            tag = f"svg:{tag}"
        if len(attributes) != len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.tags.append((tag, attributes))

    def _check_ids(self) -> None:
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        self.faults += [f"id {one} is there twice" for one in {one for one in ids if ids.count(one) > 1}]
        for tag, attributes in self.tags:
            wanted = [one for name in REFERENCES for one in attributes.get(name, "").split()]
            if attributes.get("href", "").startswith("#"):
                wanted.append(attributes["href"][1:])
            self.faults += [f"<{tag}> refers to {one}, which is not there" for one in wanted if one not in ids]

    def _check_outline(self) -> None:
        for tag in ("h1", "main", "title", "header", "footer"):
            found = len([name for name, _ in self.tags if name == tag])
            if found != 1:
                self.faults.append(f"{found} of <{tag}>")
        level = 0
        for name, _ in self.tags:
            if name in HEADINGS:
                if int(name[1]) > level + 1:
                    self.faults.append(f"<{name}> after level {level}")
                level = int(name[1])
        if [attributes.get("lang") for attributes in self.all("html")] != ["en"]:
            self.faults.append("no language")

    def _check_controls(self) -> None:
        labelled = {label.get("for") for label in self.all("label")}
        for tag in ("input", "select", "textarea"):
            for attributes in self.all(tag):
                if attributes.get("type") != "hidden" and attributes.get("id") not in labelled:
                    self.faults.append(f"<{tag} name={attributes.get('name')}> has no label")
        self.faults += ["a <button> has no type" for button in self.all("button") if "type" not in button]
        self.faults += ["a <table> has no caption"] * (len(self.all("table")) - len(self.all("caption")))

    def _check_policy(self) -> None:
        """What the content security policy would block."""
        for tag, attributes in self.tags:
            if tag in {"style", "iframe", "object", "embed"} or (tag == "script" and "src" not in attributes):
                self.faults.append(f"<{tag}>")
            self.faults += [f"<{tag} {name}>" for name in attributes if name == "style" or name.startswith("on")]
            for name in ("src", "href", "action"):
                target = attributes.get(name, "/")
                if tag == "img" and name == "src" and target.startswith("data:image/"):
                    continue  # which the policy allows
                if not target.startswith(("/", "#", "?")) or target.startswith("//"):
                    self.faults.append(f"<{tag} {name}={target}> leads elsewhere")
