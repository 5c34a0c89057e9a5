"""How samples are drawn: the rules, each in use since a version and a time.

A seed gives the same samples only under the same rule. A certificate is recomputed bit for bit by the rule that was in
use when it was made; `certificate.history` derives that from its date. New certificates use the last rule. A rule
changes what is drawn, and for which claims. It never changes what a claim means: claims are equally valid under every
rule.

A change of what is drawn adds a rule at the end, and code asks `DrawingRule.includes` wherever the two differ.
"""

from __future__ import annotations

from enum import Enum, unique


@unique
class DrawingRule(Enum):
    """The rules in the order of their introduction. Each includes all earlier ones.

    A value is the first version that draws by the rule, and the time since when; None if that version did so from its
    beginning.
    """

    BEFORE_POWERS = ((0, 0, 0), None)
    #: Tests may draw from powers of the likelihood ratio, and clip. Samples that are drawn in addition to a guarantee come after
    #: the tests of the last claim.
    POWERS = ((0, 1, 0), "2026-11-25T20:00:00+00:00")
    #: Powers may be drawn by blocks of rounds. A direction that is far from the claims of a grid is tested once, at the hardest
    #: of them. The pilot's first evaluations are coarse and follow a Gaussian model. Lower bounds are drawn from the estimate's
    #: mixture if tests draw from a power. No histogram is drawn of a proposal whose bound is vacuous.
    SPARING = ((0, 1, 0), "2026-11-27T00:30:00+00:00")
    #: The second moment of samples of an added record may be tested if it has no known bound. Larger powers are drawn for
    #: claims that are close, and more bounds on a profile are used that need no samples.
    SECOND_MOMENTS = ((0, 1, 0), "2026-11-27T04:05:00+00:00")
    #: Powers may be drawn with few busy replicas, and by longer blocks. A chain is not evaluated if that alone takes a large part
    #: of the time that the best chain is expected to take together with its samples.
    FEW_BUSY = ((0, 1, 0), "2026-11-27T10:00:00+00:00")
    #: Powers are drawn for users, random phases, bins and allocations too. Lower bounds on ε are searched for closer to ε.
    AUTOMATA = ((0, 1, 0), "2026-11-27T13:50:00+00:00")
    #: A power that is expected to take long is compared with scaled means. Samples for lower bounds are drawn where they improve
    #: these most, and as many as make them close. One mean is tested for random parts too.
    COMPARED = ((0, 1, 0), "2026-11-27T17:14:00+00:00")
    #: The pilot's root stays at the value evaluated last if no loss was observed there: the model does not cover such a case.
    SEEN = ((0, 1, 0), "2026-11-27T20:12:00+00:00")

    def includes(self, rule: DrawingRule) -> bool:
        """Whether samples are drawn as `rule` says: this rule is it, or a later one."""
        return self.position >= rule.position

    @property
    def position(self) -> int:
        """Return the position of this rule among all rules, from 0."""
        return list(DrawingRule).index(self)


#: The rule for new certificates.
NEWEST = list(DrawingRule)[-1]
