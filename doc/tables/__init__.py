# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The tables and plots of the documents, one module a document, and what the modules share."""


def table(head, rows):
    """Lines of a markdown table."""
    return [f"| {' | '.join(map(str, cells))} |" for cells in (head, ["---"] * len(head), *rows)]


def number(value):
    """With three digits that count, or all before the point."""
    if value is None:
        return "-"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def yes(met):
    return "yes" if met else "**no**"
