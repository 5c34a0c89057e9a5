"""The pictures of a certificate. Their curves are certified everywhere, not only at the points."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

from pyaccount.certificate.meaning import Meaning, lower_points, stated_points, upper_points
from pyaccount.directions import DIRECTIONS
from pyaccount.pages.page import Figure
from pyaccount.pages.plot import Axis, Plot, Series, log_axis
from pyaccount.records.certificate import CertificateModel
from pyaccount.risk.gaussian import chord, hull
from pyaccount.risk.tradeoff import OVERFLOW, Bound, TradeOff
from pyaccount.rounding import up

#: The smallest false-positive rate in the picture of attacks.
LEAST_RATE = 1e-6
#: Steps along ε between two points, in addition to those down δ. There are fewer if the bend of a step is less than the
#: share `UNSEEN` of the picture's height.
STEPS = 9
UNSEEN = 2e-4
#: How often the distance to the right end of a chord is halved.
HALVES = 13
#: The steepest slope of a line, so that products with it are finite.
STEEPEST = 1e150


def profile(data: CertificateModel) -> Figure:
    """Return the picture of δ over ε: upper bounds of each direction at every ε, lower bounds at the points."""
    remove, add = (hull(upper_points(data, direction)) for direction in DIRECTIONS)
    # The axis covers the larger direction; the other one may leave the picture at the bottom.
    least = [max(a.delta, b.delta) for a, b in zip(remove[-1:], add[-1:], strict=True)]
    # If losses are bounded, δ is 0 from some ε on, which a logarithmic axis cannot show.
    positive = min((one.delta for one in (*remove, *add) if one.delta > 0.0), default=1.0)
    lowest = data.guarantee.delta * 1e-3 or positive * 1e-6
    floor = max([1e-300, *([delta for delta in least if delta > 0.0] or [lowest])]) / 10.0
    down = log_axis("δ (probability)", [floor * 10.0])
    # Upper bounds below the picture are drawn at its bottom, which keeps them upper bounds. Lower bounds there are left
    # out.
    lower = tuple((epsilon, delta) for epsilon, delta in lower_points(data) if delta >= down.low)
    same = remove == add
    series = [
        Series("both directions: at most" if same else "remove: at most", _chords(remove, floor), "first"),
        Series("", _shown(stated_points(data, "remove"), floor), "first", markers=True, line=False),
    ]
    if not same:
        series.append(Series("add: at most", _chords(add, floor), "second"))
        series.append(Series("", _shown(stated_points(data, "add"), floor), "second", markers=True, line=False))
    series.append(Series("at least", lower, "lower", markers=True, line=False))
    last = max(remove[-1].epsilon, add[-1].epsilon) or 1.0
    words = f"ε runs from {remove[0].epsilon:.4g} to {last:.4g} nats"
    plot = Plot(
        title="Privacy profile: δ over ε",
        description=f"δ at most falls as ε grows; {words}. The table of the profile has the values.",
        x=Axis("ε (nats)", 0.0, last),
        y=down,
        series=tuple(series),
    )
    caption = (
        "Dots are the bounds on δ in the table and in the guarantee. Lines are upper bounds on δ at every ε: between two dots "
        "they follow from the convexity of δ in e^ε.",
    )
    origin = "composition" if data.evidence.sampling is None else "histogram"
    return Figure("profile-picture", plot, caption, origin)


def stated_profile(data: CertificateModel) -> Plot:
    """Return the plot of the bounds on δ over ε at the certificate's points; the lines between them are no bounds."""
    upper = tuple((point.epsilon, point.delta) for point in data.profile)
    lower = tuple((point.epsilon, point.delta_lower) for point in data.profile)
    last = max((point.epsilon for point in data.profile), default=1.0) or 1.0
    return Plot(
        title=data.name,
        description="δ at most and δ at least over ε. Between the points nothing is said.",
        x=Axis("ε", 0.0, 1.03 * last),
        y=log_axis("δ", [delta for _, delta in (*upper, *lower)]),
        series=(Series("δ at most", upper, "first", markers=True), Series("δ at least", lower, "second", markers=True)),
    )


def trade_off(meaning: Meaning, presence: str, absence: str) -> Figure:
    """Return the picture of the trade-off curve: lower bound on false-negative rate over false-positive rate."""
    curve = meaning.trade_off
    series = [Series(_label(curve, presence), _errors(curve), "first")]
    if not curve.symmetric:
        series.append(Series(f"detecting {absence}", _errors(curve.swapped), "second"))
    series.append(Series("perfect privacy", ((0.0, 1.0), (1.0, 0.0)), "reference"))
    plot = Plot(
        title="Trade-off curve: false-negative rate over false-positive rate",
        description="No attack has errors below the curve. It lies below the straight line of perfect privacy, from (0, 1) to "
        f"(1, 0); the widest gap between them is the advantage, {up(meaning.advantage, 3)} at most.",
        x=Axis("false-positive rate", 0.0, 1.0),
        y=Axis("false-negative rate, at least", 0.0, 1.0),
        series=tuple(series),
    )
    return Figure("trade-off-picture", plot, ("No attack has error rates below the curve.",), "attack")


def attacks(meaning: Meaning, presence: str, absence: str) -> Figure:
    """Return the picture of the largest true-positive rate over the false-positive rate, where both are small."""
    curve = meaning.trade_off
    series = [Series(_label(curve, presence), _rates(curve), "first")]
    if not curve.symmetric:
        series.append(Series(f"detecting {absence}", _rates(curve.swapped), "second"))
    guess = ((LEAST_RATE, LEAST_RATE), (1.0, 1.0))
    series.append(Series("guessing", guess, "reference"))
    plot = Plot(
        title="Attacks: true-positive rate over false-positive rate, both logarithmic",
        description="No attack has a true-positive rate above the curve. The table of attacks has the values.",
        x=Axis("false-positive rate", LEAST_RATE, 1.0, log=True),
        y=log_axis("true-positive rate, at most", [rate for one in series for _, rate in one.points]),
        series=tuple(series),
        legend="bottom right",
    )
    return Figure("attack-picture", plot, ("No attack is above the curve; the dotted line is guessing.",), "attack")


def _label(curve: TradeOff, presence: str) -> str:
    return "certified" if curve.symmetric else f"detecting {presence}"


def _chords(corners: list[Bound], floor: float) -> tuple[tuple[float, float], ...]:
    """Return points such that the lines between them, with δ logarithmic, are nowhere below the bound; ends at `floor`.

    A chord is A − B e^ε and its logarithm is concave: lines between points of it would be below it. The lines therefore
    join the points where its tangents at neighbouring points meet. These are above it, by too little to be visible.
    """
    line = [(corners[0].epsilon, max(corners[0].delta, floor))]
    for left, right in pairwise(corners):
        if left.delta <= floor:
            break
        places = _places(left, right, floor)
        for (start, above, slope), (end, below, steeper) in pairwise(places):
            bend = math.log(above / below) + slope * (end - start)
            meet = end - bend / (slope - steeper) if slope > steeper else start
            # If rounding hides the bend, the line turns at the higher end.
            meet = min(max(meet, start), end)
            line += [(meet, max(above * math.exp(slope * (meet - start)), below)), (end, below)]
        # If the line leaves the picture, it does so at the bottom, and ends there.
        line.append((right.epsilon, right.delta) if right.delta > floor else (places[-1][0], floor))
    return tuple(line)


def _places(left: Bound, right: Bound, floor: float) -> list[tuple[float, float, float]]:
    """Return (ε, δ, slope of ln δ) at points of a chord, from its left end to its right end or to `floor`, ever closer.

    At a share s = (δ_left − δ)/(δ_left − δ_right) of the fall, e^ε is at the share s between its ends; the slope is −B
    e^ε/δ.
    """
    width, fall = right.epsilon - left.epsilon, left.delta - right.delta
    lowest = max(right.delta, floor)
    if width >= OVERFLOW or fall <= 0.0:
        # The chord is flat within the precision of doubles, up to the right end.
        return [(left.epsilon, left.delta, 0.0), (right.epsilon, left.delta, 0.0)]
    shrink = -math.expm1(-width)
    # The tangents at the ends of a step meet above the chord, by about an eighth of the bend over the steps squared.
    fallen = math.log(left.delta / lowest)
    bend = fallen * (fallen + width) / 8.0
    steps = max(1, min(STEPS, math.ceil(math.sqrt(bend / (UNSEEN * -math.log(floor))))))
    heights = {chord(left, right, left.epsilon + width * k / steps) for k in range(1, steps)} | {left.delta, lowest}
    # Halve the distance to the right end until the rest is negligible beside that end, or beside the width of the
    # picture.
    halves = HALVES if steps == STEPS else 1
    shares = [0.5**k for k in range(1, halves) if 0.5**k * fall > 0.1 * right.delta]
    heights |= {right.delta + share * fall for share in shares}
    places = []
    for delta in sorted((height for height in heights if lowest <= height <= left.delta), reverse=True):
        fallen, left_to_fall = (left.delta - delta) / fall, (delta - right.delta) / fall
        # Computed from the nearer end, where no digits cancel.
        epsilon = (
            left.epsilon + math.log1p(fallen * math.expm1(width))
            if fallen < 0.5
            else right.epsilon + math.log1p(-shrink * left_to_fall)
        )
        epsilon = min(max(epsilon, left.epsilon), right.epsilon)
        # Between neighbouring doubles the slope may exceed every number.
        slope = max(-STEEPEST, -fall / shrink * math.exp(epsilon - right.epsilon) / delta)
        places.append((epsilon, delta, slope))
    return places


def _shown(points: Iterable[tuple[float, float]], floor: float) -> tuple[tuple[float, float], ...]:
    return tuple((epsilon, delta) for epsilon, delta in points if delta > floor)


def _errors(curve: TradeOff) -> tuple[tuple[float, float], ...]:
    return tuple((alpha, 1.0 - rate) for alpha, rate in curve.vertices())


def _rates(curve: TradeOff) -> tuple[tuple[float, float], ...]:
    steps = 240
    grid = [math.exp(math.log(LEAST_RATE) * (1.0 - k / steps)) for k in range(steps + 1)]
    return tuple((alpha, curve.true_positive_rate(min(alpha, 1.0))) for alpha in grid)
