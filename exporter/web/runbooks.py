#!/usr/bin/env python3
"""Writes docs/runbooks.md as the page at /runbooks (the arguments are both paths), so that the reasons on the live page have an address that
works without a network. A heading `## GpuLost` has the anchor `gpulost`. Reads the Markdown that the file uses: headings, paragraphs,
lists, tables, code, emphasis, and links to sections of the page; the other documents are not served, so a link to them is its text."""
import html
import re
import sys

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Runbooks - gpumeter</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="gpumeter.css">
</head>
<body>
<main class="prose">
<p><a href="./">All GPUs</a></p>
"""
TAIL = "</main>\n</body>\n</html>\n"
MARKS = re.compile(r"`(?P<code>[^`]+)`|\*\*(?P<strong>.+?)\*\*|\[(?P<label>[^\]]*)\]\((?P<address>[^)]*)\)")


def inline(text: str) -> str:
    def marked(found: re.Match) -> str:
        if found["code"]:
            return f"<code>{html.escape(found['code'], quote=True)}</code>"
        if found["strong"]:
            return f"<strong>{inline(found['strong'])}</strong>"
        label, address = inline(found["label"]), html.escape(found["address"])
        return f'<a href="{address}">{label}</a>' if address.startswith("#") else label

    out, end = "", 0
    for found in MARKS.finditer(text):
        out += html.escape(text[end:found.start()]) + marked(found)
        end = found.end()
    return (out + html.escape(text[end:])).replace("&#x27;", "'")


def row(line: str, cell: str) -> str:
    cells = "".join(f"<{cell}>{inline(text.strip())}</{cell}>" for text in line.strip("|").split("|"))
    return f"<tr>{cells}</tr>\n"


def block(lines: list[str]) -> str:
    """Lines without an empty one between them."""
    first = lines[0]
    if first.startswith("#"):
        level, title = len(first) - len(first.lstrip("#")), first.lstrip("# ")
        heading = f'<h{level} id="{html.escape(title.lower())}">{inline(title)}</h{level}>\n'
        return heading + (block(lines[1:]) if lines[1:] else "")
    if first.startswith("|"):  # the second line separates the head
        return "<table>\n" + row(first, "th") + "".join(row(line, "td") for line in lines[2:]) + "</table>\n"
    text = "\n".join(lines)
    if first.startswith("- "):
        items = (" ".join(item.split()) for item in text[2:].split("\n- "))
        return "<ul>\n" + "".join(f"<li>{inline(item)}</li>\n" for item in items) + "</ul>\n"
    return f"<p>{inline(' '.join(text.split()))}</p>\n"


def page(markdown: str) -> str:
    blocks = (part.strip("\n").split("\n") for part in re.split(r"\n\n+", markdown) if part.strip())
    return HEAD + "".join(block(lines) for lines in blocks) + TAIL


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as markdown, open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(page(markdown.read()))
