"""Pages of one file each, that need neither network nor scripts."""

from __future__ import annotations

from html import escape

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #5b6b7b; --line: #d8e0e8;
  --paper: #fff; --cell: 20, 110, 160; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4eaf0; --soft: #9fb0c0; --line: #33414f;
  --paper: #141a21; --cell: 90, 180, 230; } }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
p { color: var(--soft); margin: .2rem 0 .8rem; max-width: 46rem; }
.wide { overflow-x: auto; } .tree svg { border-radius: 6px; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: .2rem .5rem;
  border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { font-weight: 600; color: var(--soft); vertical-align: bottom; } td.n, th.n { text-align: right;
  font-variant-numeric: tabular-nums; }
td.gene { white-space: normal; font-family: ui-monospace, monospace; font-size: 12px; }
code { font-family: ui-monospace, monospace; font-size: 12px; }
"""


def html_page(title: str, body: str, style: str = "") -> str:
    """A page with a title and what is on it; both are HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="generator" content="nacre">\n'
        f"<title>{title}</title>\n<style>{_STYLE}{style}</style>\n</head>\n<body>\n"
        f"{body}</body>\n</html>\n"
    )


def escape_text(text: str) -> str:
    """Text as HTML, with what cannot be printed made visible."""
    return escape("".join(c if c.isprintable() else "?" for c in text))
