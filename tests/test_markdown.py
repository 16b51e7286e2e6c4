"""Markdown to plain text: which lines are structure, and that nothing else changes or gets lost."""

import pytest
from garden import document
from hypothesis import given, settings
from hypothesis import strategies as st

from labsupport.pipeline.commonmark import split_row
from labsupport.pipeline.markdown import headings, to_plain


def plain(source: str, **changes) -> str:
    """The plain text after the title line."""
    text = to_plain(document(source, **changes)).text
    assert text.startswith("Hedge trimmers")
    return text.removeprefix("Hedge trimmers").removeprefix("\n\n")


def outline(source: str) -> list[tuple[int, str]]:
    return [(level, text) for level, text, _ in headings(document(source))]


def kinds(source: str) -> list[str]:
    return [block.kind for block in to_plain(document(source)).blocks]


def test_title_line_then_blocks_with_one_blank_line_between():
    source = "# Hedge trimmers\n\n\n\nOil the blades.\n## Storage\nKeep it dry.\n\n\n- hook\n- box\n"
    assert to_plain(document(source)).text == (
        "Hedge trimmers\n\nOil the blades.\n\nStorage\n\nKeep it dry.\n\n- hook\n- box")


def test_a_first_heading_that_repeats_the_title_is_the_title_line():
    found = to_plain(document("# Hedge trimmers\n\nText.\n"))
    assert (found.blocks[0].kind, found.blocks[0].start, found.blocks[0].end) == ("heading", 0, 14)
    assert found.text == "Hedge trimmers\n\nText."


@pytest.mark.parametrize("source", ["# Other trimmers\n\nText.\n", "## Hedge trimmers\n\nText.\n",
                                    "Text.\n\n# Hedge trimmers\n"])
def test_any_other_heading_stays(source):
    assert len(plain(source).split("\n\n")) == 2
    assert all(block.start > 0 for block in to_plain(document(source)).blocks)


@pytest.mark.parametrize("source", ["", "\n \n", "<!-- to do -->\n", "# Hedge trimmers\n", "[a]: https://example.com\n",
                                    "\u00a0\n", "#\n"])
def test_a_document_without_text_is_its_title_line(source):
    assert to_plain(document(source)).text == "Hedge trimmers"


def test_hash_lines_in_code_lists_and_quotations_are_no_headings():
    source = """# Hedge trimmers

## Reading the log

```sh
# list the last runs
## newest first
```

~~~~
``` inside
# still code
~~~
# and here
~~~~

   ```
# code that is indented
   ```

- check
  ```
  # code in a list
  ```
  # heading in a list

> # heading in a quotation

    # indented code

`# code in a line`

####### seven marks
#no space

## Reset

```
# never closed
## to the end
"""
    assert outline(source) == [(1, "Hedge trimmers"), (2, "Reading the log"), (2, "Reset")]
    assert plain(source).endswith("Reset\n\n```\n# never closed\n## to the end")


def test_underlined_headings():
    source = """Hedge trimmers
==============

Blades
------

A sentence over
two lines
---

- item
---

| part | price |
|------|-------|
| blade | 12 |

***

Fees
-
"""
    assert outline(source) == [(1, "Hedge trimmers"), (2, "Blades"), (2, "A sentence over two lines"), (2, "Fees")]
    assert kinds(source) == ["heading", "heading", "heading", "list", "rule", "table", "rule", "heading"]
    assert "part | price\nblade | 12" in plain(source)


def test_marks_around_headings_go():
    assert plain("  ##  Oil  ##\n\nText\n") == "Oil\n\nText"
    assert plain("Oil and\n  grease\n===\n") == "Oil and grease"


def test_paths_when_levels_are_skipped():
    source = """Before any heading.

# Hedge trimmers

### Starting

## Cutting

##### Thin

### Thick

# Annex
"""
    assert [path for _, _, path in headings(document(source))] == [
        ("Hedge trimmers",), ("Hedge trimmers", "Starting"), ("Hedge trimmers", "Cutting"),
        ("Hedge trimmers", "Cutting", "Thin"), ("Hedge trimmers", "Cutting", "Thick"), ("Annex",)]


def test_tables_become_rows_of_cells():
    source = "| Model | Blade |\n|:--|--:|\n| HT-50 | 50 cm |\n  | HT-60 |\nHT-70 | 70 cm | extra |\n"
    found = to_plain(document(source))
    [table] = found.blocks
    assert [found.text[start:end] for start, end in table.rows] == [
        "Model | Blade", "HT-50 | 50 cm", "HT-60", "HT-70 | 70 cm | extra"]
    assert found.text[table.start:table.end].count("\n") == 3


@pytest.mark.parametrize(("row", "cells"), [
    ("| a | b |", [" a ", " b "]),
    ("a | b", ["a ", " b"]),
    (r"| a\|b | c |", [r" a\|b ", " c "]),
    ("| `x|y` | c |", [" `x|y` ", " c "]),
    ("| ``x`|y`` | c |", [" ``x`|y`` ", " c "]),
    ("| `x | c |", [" `x ", " c "]),
    (r"| \`x | y` |", [r" \`x ", " y` "]),
    (r"| a\\|", [r" a\\"]),
    ("| a |  | c |", [" a ", "  ", " c "]),
    ("|", [""]),
    ("", [""]),
])
def test_cells_of_a_row(row, cells):
    assert split_row(row) == cells


def test_escaped_pipes_and_pipes_in_code_stay_in_their_cell():
    source = "| Code | Meaning |\n|---|---|\n| a\\|b | either |\n| `x|y` | both |\n"
    assert plain(source) == "Code | Meaning\na\\|b | either\n`x|y` | both"


def test_lists_keep_every_character():
    source = """1. Switch it off.
   - Pull the plug.

     Wait a minute.

   - Take out the battery.
       - Left side first.
       - Then the right.
2. Clean it.

   | Part | Cloth |
   |------|-------|
   | blade | dry  |

3. Store it.

* another list
+ and another
"""
    assert plain(source) == source.rstrip("\n").replace("list\n+", "list\n\n+")  # another marker, another list
    first = to_plain(document(source)).blocks[0]
    assert [child.kind for child in first.children] == ["item"] * 3
    assert [child.kind for child in first.children[1].children] == ["paragraph", "table"]


@pytest.mark.parametrize("source", [
    "Two  spaces and\ta tab  \nand a hard break\\\nhere",
    "**bold** and *thin* and `code` and &amp; and \\# and ~x~",
    "```python\nif x:\n\n\n    y\n```",
    "    indented code\n\n      more of it",
    "> quoted\n> > twice\nlazy",
    "- a\n\n\n  b\n- c",
    "<div>\n<b>x</b>\n</div>",
    "<!-- never closed\n\ntext",
    "a [b] c](d) [e](<f",
    "[script](javascript:alert(1))",
    "Line one\u2028same line\x0bstill the same",
])
def test_the_rest_stays_as_it_was_written(source):
    assert plain(source + "\n") == source


@pytest.mark.parametrize(("source", "read"), [
    ("See [the shop](https://example.com/a(b)c \"title\") now.", "See the shop now."),
    ("See [**our** `shop`](<x y>).", "See **our** `shop`."),
    ("Mail <help@larkfield.example> or <https://larkfield.example/a>.", "Mail help@larkfield.example or https://larkfield.example/a."),
    ("[one][a], [two][], [three].\n\n[a]: /1\n[two]: /2\n[three]: /3", "one, two, three."),
    ("[a [b]](/c) and [x](/y)[z](/w)", "a [b] and xz"),
    ("- [a\n  long link](/u)\n- b", "- a\n  long link\n- b"),
    ("> text [a\n> b](\n> /u) end", "> text a\n> b end"),
    ("1. x\n\n   | a [p](/q) | a [p](/q) |\n   |---|---|\n   | [c](/d) | e |",
     "1. x\n\n   | a p | a p |\n   |---|---|\n   | c | e |"),
    ("- # Head [l](/m) #", "- # Head l #"),
    ("## About [oil](/oil)\n\nx", "About oil\n\nx"),
    ("| [a](/b) | `[c](/d)` |\n|---|---|\n| ![e](f.png) | [g](h.png) |", "a | `[c](/d)`\n![e](f.png) | [g](h.png)"),
    ("[![The form](form.png)](/form)", "![The form](form.png)"),
    ("`[no](/link)` \\[no](/link)", "`[no](/link)` \\[no](/link)"),
])
def test_links_become_their_text(source, read):
    assert plain(source + "\n") == read


@pytest.mark.parametrize(("source", "read", "pictures"), [
    ("See ![the form](screens/form.png \"now\").", "See ![the form](screens/form.png \"now\").", ("screens/form.png",)),
    ("See [the form](../form.JPG?x=1#y).", "See [the form](../form.JPG?x=1#y).", ("../form.JPG?x=1#y",)),
    ("- ![a][s]\n- [b][s]\n\n[s]: x/s.webp", "- ![a](x/s.webp)\n- [b](x/s.webp)", ("x/s.webp",) * 2),
    ("See <https://x.example/a.png>.", "See <https://x.example/a.png>.", ("https://x.example/a.png",)),
    ("![s]\n\n[s]: s.png", "![s](s.png)", ("s.png",)),
    ("![no file type](/picture)", "![no file type](/picture)", ("/picture",)),
])
def test_pictures_keep_their_address(source, read, pictures):
    found = to_plain(document(source + "\n"))
    assert found.text == "Hedge trimmers\n\n" + read
    assert found.blocks[0].pictures == pictures


@pytest.mark.parametrize(("source", "read"), [
    ("<!-- a -->\n\nText", "Text"),
    ("<!-- a\n\nb -->\n\nText", "Text"),
    ("<!-- a --> Text after", " Text after"),
    ("Text <!-- a --> text", "Text  text"),
    ("- a\n  <!-- note -->\n- b", "- a\n- b"),
    ("- a\n\n  <!-- note\n\n  more -->\n- b", "- a\n\n- b"),
    ("# <!-- a -->Head", "Head"),
    ("`<!-- code -->` and\n\n```\n<!-- code -->\n```", "`<!-- code -->` and\n\n```\n<!-- code -->\n```"),
    ("<div>\n<!-- a -->\nx\n</div>", "<div>\nx\n</div>"),
])
def test_html_comments_go(source, read):
    assert plain(source + "\n") == read


def test_deep_nesting_is_no_trouble():
    assert plain("> " * 300 + "deep\n") == "> " * 300 + "deep"
    assert plain("- " * 300 + "deep\n") == "- " * 300 + "deep"


MARKDOWN = st.lists(max_size=40, elements=st.sampled_from([
    "# ", "## ", "### ", "- ", "1. ", "> ", "  ", "    ", "```\n", "~~~\n", "| a | b |\n|---|---|\n", "| c | `d|e` |\n",
    "\n", "\n\n", "---\n", "===\n", "<!-- ", " -->", "[", "](/u)", "![", "](p.png)", "<https://x.example>", "[r]: /u\n",
    "[r]", "*", "`", "\\", "word ", "Oil it. ", "Ünï ", "e\u0301 ", "\u00a0", "\t", "<div>\n", "</div>\n", "&amp;",
])).map("".join)


@settings(deadline=None)
@given(MARKDOWN)
def test_blocks_tile_the_plain_text(source):
    found = to_plain(document(source))
    at = len("Hedge trimmers")
    for block in found.blocks:
        if block.start:
            assert found.text[at:block.start] == "\n\n"
            assert found.text[block.start:block.end].strip()
            at = block.end
            _check_inside(block)
    assert at == len(found.text)


def _check_inside(block):
    edges = [block.start]
    for inner in block.children:
        assert edges[-1] <= inner.start < inner.end <= block.end
        edges.append(inner.end)
        _check_inside(inner)
    for start, end in block.rows:
        assert edges[-1] <= start <= end <= block.end
        edges.append(end)


MARKS = ["## ", "- ", "> ", "    ", "\n", "\n\n", "```\n", "| ", " |\n|---|\n", "*", "`", "---\n", "[x](/u) ", "<i>",
         "<!--"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=30))
def test_no_word_is_ever_lost(marks):
    words = [f"word{number:02}" for number in range(len(marks))]
    text = to_plain(document("".join(f"{mark}{word} " for mark, word in zip(marks, words, strict=True)))).text
    assert [word for word in words if word in text] == words
