"""The picture of the budgets of risk in docs/report.md: what each of the three leaves to an attacker.

    python docs/pictures/budgets.py [FOLDER]

Drawn from the definitions; a test compares the file with what is drawn here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import NormalDist

#: The budgets that are shown: an advantage, a true-positive rate at a false-positive rate, and μ.
ADVANTAGE, RATE, AT, MU = 0.4, 0.45, 0.1, 1.0
SIDE, LEFT, TOP, BELOW = 300, 58, 14, 48
STYLE = """\
text { font: 11px system-ui, sans-serif; fill: #57606a }
path { fill: none; stroke-width: 2 } .back { fill: #f6f8fa } .guess { stroke: #8c959f; stroke-dasharray: 4 4 }
.advantage { stroke: #1f6feb } .mu { stroke: #bc4c00 } .rate { fill: #1a7f37; stroke: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #9aa4af }
.back { fill: #161b22 } .advantage { stroke: #58a6ff } .mu { stroke: #f0883e } .rate { fill: #3fb950; stroke: #3fb950 }
}"""
NORMAL = NormalDist()


def place(rate: float, power: float) -> str:
    """A point by its false- and its true-positive rate."""
    return f"{LEFT + SIDE * rate:.1f} {TOP + SIDE * (1.0 - power):.1f}"


def gaussian(rate: float) -> float:
    """The true-positive rate of the best test of N(μ, 1) against N(0, 1)."""
    return NORMAL.cdf(NORMAL.inv_cdf(rate) + MU)


def path(kind: str, points: list[tuple[float, float]]) -> str:
    """A line through points."""
    return f'<path class="{kind}" d="M{"L".join(place(*point) for point in points)}"/>'


def label(rate: float, power: float, text: str) -> str:
    """Words at a point."""
    x, y = place(rate, power).split()
    return f'<text x="{x}" y="{y}">{text}</text>'


def ticks() -> list[str]:
    """Rates beside both axes."""
    rates = (0.0, 0.25, 0.5, 0.75, 1.0)
    below = [
        f'<text class="tick" x="{LEFT + SIDE * rate:.1f}" y="{TOP + SIDE + 16}" text-anchor="middle">{rate:g}</text>'
        for rate in rates
    ]
    beside = [
        f'<text class="tick" x="{LEFT - 6}" y="{TOP + SIDE * (1.0 - rate) + 4:.1f}" text-anchor="end">{rate:g}</text>'
        for rate in rates
    ]
    return [*below, *beside]


def svg() -> str:
    """The square of both rates, with a line, a point and a curve that no attack may pass."""
    width, height = LEFT + SIDE + 10, TOP + SIDE + BELOW
    curve = [(k / 200, gaussian(k / 200)) for k in range(1, 200)]
    x, y = place(AT, RATE).split()
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img">',
            "<title>Three budgets of risk</title>",
            f"<desc>True-positive rate over false-positive rate. The line lies {ADVANTAGE} above guessing; the point is a rate "
            f"of {RATE} at {AT}; the curve is that of N({MU:g}, 1) against N(0, 1).</desc>",
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="back" x="{LEFT}" y="{TOP}" width="{SIDE}" height="{SIDE}"/>',
            *ticks(),
            path("guess", [(0.0, 0.0), (1.0, 1.0)]),
            path("advantage", [(0.0, ADVANTAGE), (1.0 - ADVANTAGE, 1.0)]),
            path("mu", [(0.0, 0.0), *curve, (1.0, 1.0)]),
            f'<circle class="rate" cx="{x}" cy="{y}" r="4"/>',
            label(0.03, 0.75, f"advantage {ADVANTAGE}"),
            label(0.47, 0.77, f"gaussian_mu {MU:g}"),
            label(AT + 0.11, RATE + 0.08, "true_positive_rate"),
            label(AT + 0.11, RATE + 0.035, f"{RATE} at {AT}"),
            label(0.62, 0.56, "guessing"),
            f'<text x="{LEFT}" y="{height - 12}">false-positive rate →</text>',
            f'<text transform="translate(16 {TOP + SIDE}) rotate(-90)">true-positive rate →</text>',
            "</svg>\n",
        ]
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    (folder / "budgets.svg").write_text(svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
