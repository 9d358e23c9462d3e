"""What is in a page of maps, read as a browser would."""

import json
from html.parser import HTMLParser


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.elements = []
        self.content = {}
        self.open = None

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open = len(self.elements) - 1

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open is not None:
            self.content[self.open] = self.content.get(self.open, "") + data


def elements_of(page):
    """Every element in order: (tag, attributes, its text)."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return [
        (tag, about, reader.content.get(i, "")) for i, (tag, about) in enumerate(reader.elements)
    ]


def decks_of(page):
    """The JSON of each map: its deck, tooltip and the size it was fitted to."""
    return [
        json.loads(text)
        for tag, about, text in elements_of(page)
        if tag == "script" and about.get("type") == "application/json"
    ]
