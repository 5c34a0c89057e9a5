"""Judging a mechanism by samples of its privacy loss: from a plan with a sampled reduction to evidence.

`shards` runs the core's sampler with a seed and a deadline; `estimates` and `proposals` choose where to sample, `betting_choice`
for a test, and with which fractions. `error_probability` says which δ₀ is tested for the δ stated, and how q is folded into it;
`tests_of_claims` tests claims by betting (the wealth itself grows in the core's `claims::betting`) or with a fixed number of
samples. `composed_profile` composes the phases that are not sampled into the curve that samples are weighed with; `session` holds
these for one execution. `fixed_sequence` chooses the grid and tests its claims in sequence: `calibrate` says what a noise
multiplier claims, `confidence` what an ε or δ of a given mechanism, `pilot` finds where grids begin, and `once` which direction a
grid tests only once. `profile` reads curves off loss
histograms, `evidence` gathers what a certificate states, `execute` chooses by the document's blank. `forecast` estimates what
it will cost; `retest` tests the statement of a finished certificate. Estimates steer, only tests certify: no number of the
pilot's enters a guarantee.
"""

from pyaccount.execute.sampling.evidence import SampledEvidence
from pyaccount.execute.sampling.execute import execute_sampled

__all__ = ["SampledEvidence", "execute_sampled"]
