"""How samples are drawn: one rule after another, each in use since a version and a moment.

A seed gives the same samples only if they are drawn by the same rule. So a certificate is recomputed, bit for bit, by the rule of
its own time, which `certificate.history` reads off its date; everything new is drawn by the last one. A rule changes what is
drawn, and for which claims, never what a claim means: each is as valid as any other.

A change of what is drawn has a line here, at the end, and asks `DrawingRule.includes` where it differs from before.
"""

from __future__ import annotations

from enum import Enum, unique


@unique
class DrawingRule(Enum):
    """The rules in the order in which they came. Each includes those before it.

    Its value is the version that draws by it first, and the moment since when; none where that version did from its beginning.
    """

    BEFORE_POWERS = ((0, 0, 0), None)
    #: Tests may draw from powers of the likelihood ratio, and clip; what is drawn beside a guarantee follows the tests of the
    #: last claim.
    POWERS = ((0, 1, 0), "2026-11-25T20:00:00+00:00")
    #: Powers may be drawn by blocks of rounds. A direction that is far from the claims of a grid is tested once, at the hardest
    #: of them. The pilot's first looks are coarse and follow a Gaussian model. Lower ends are drawn from the estimate's mixture
    #: where tests draw from a power. No histogram is drawn of a proposal whose bound says nothing.
    SPARING = ((0, 1, 0), "2026-11-27T00:30:00+00:00")
    #: The second moment of samples of an added record may be tested where none is known. Larger powers are drawn where claims are
    #: near, and more is taken to be known of a profile without samples.
    SECOND_MOMENTS = ((0, 1, 0), "2026-11-27T04:05:00+00:00")
    #: Powers may be drawn with few busy replicas, and by longer blocks. A chain is not looked at that takes a good part of what
    #: the best one is expected to take with its samples.
    FEW_BUSY = ((0, 1, 0), "2026-11-27T10:00:00+00:00")
    #: Powers are drawn of users, of random phases, of bins and of allocations too. Lower ends of ε are looked for nearer to it.
    AUTOMATA = ((0, 1, 0), "2026-11-27T13:50:00+00:00")
    #: A power that is expected to take long is compared with scaled means. Lower ends are drawn where samples are worth most, and
    #: as many as make them near. One mean is tested for random parts too.
    COMPARED = ((0, 1, 0), "2026-11-27T17:14:00+00:00")
    #: The pilot's root stays where it was looked for if the last look has seen no loss: the model says nothing of such a look.
    SEEN = ((0, 1, 0), "2026-11-27T20:12:00+00:00")

    def includes(self, rule: DrawingRule) -> bool:
        """Whether samples are drawn as this rule says: it, or one that came after it."""
        return self.position >= rule.position

    @property
    def position(self) -> int:
        """The place among all rules."""
        return list(DrawingRule).index(self)


#: What new certificates are drawn by.
NEWEST = list(DrawingRule)[-1]
