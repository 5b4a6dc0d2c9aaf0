#!/usr/bin/env python3
"""exporter/web/runbooks.py: docs/runbooks.md as HTML. Browsers get the whole page in page_browsers."""
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "exporter/web"))
import runbooks  # noqa: E402


class RunbooksTest(unittest.TestCase):
    def assert_html(self, markdown: str, expected: str) -> None:
        self.assertEqual(runbooks.page(markdown), runbooks.HEAD + expected + runbooks.TAIL)

    def test_it_has_paragraphs_lists_tables_and_headings_with_anchors(self) -> None:
        self.assert_html("# Runbooks\n\none\ntwo\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n## GpuLost\nGone.\n\n- **Look at** x\n  and y\n- **Do** z\n\nEnd\n",
                         '<h1 id="runbooks">Runbooks</h1>\n<p>one two</p>\n<table>\n<tr><th>a</th><th>b</th></tr>\n'
                         '<tr><td>1</td><td><code>2</code></td></tr>\n</table>\n<h2 id="gpulost">GpuLost</h2>\n<p>Gone.</p>\n'
                         "<ul>\n<li><strong>Look at</strong> x and y</li>\n<li><strong>Do</strong> z</li>\n</ul>\n<p>End</p>\n")

    def test_only_sections_of_the_page_are_links(self) -> None:
        self.assert_html("see [GpuLost](#gpulost) and [all](conditions.md), [x] (y)\n",
                         '<p>see <a href="#gpulost">GpuLost</a> and all, [x] (y)</p>\n')

    def test_text_is_no_markup(self) -> None:
        self.assert_html("a <b> & `<c>` ** d\n", "<p>a &lt;b&gt; &amp; <code>&lt;c&gt;</code> ** d</p>\n")


if __name__ == "__main__":
    unittest.main()
