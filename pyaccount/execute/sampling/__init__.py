"""Judging a mechanism by samples of its privacy loss: from a plan with a sampled reduction to evidence.

`shards` runs the core's sampler with a seed and a deadline; `estimates` and `proposals` choose where to sample, `betting` for a
test; `acceptance` says which δ₀ is tested for the δ stated, and how q is folded into it; `verify` tests claims by betting or
with a fixed number of samples; `composed_profile` composes the phases that are not sampled into the curve
that samples are weighed with; `session` holds these for one execution. `fixed_sequence` tests the claims on a grid in sequence:
`calibrate` those of noise multipliers, `confidence` those of ε or δ of a given mechanism. `profile` reads curves off loss
histograms, `evidence` gathers what a certificate states, `execute` chooses by the document's blank. `forecast` estimates what
it will cost; `retest` tests the statement of a finished certificate. Estimates steer, only tests certify: no number of the
pilot's enters a guarantee.
"""

from pyaccount.execute.sampling.evidence import SampledEvidence
from pyaccount.execute.sampling.execute import execute_sampled

__all__ = ["SampledEvidence", "execute_sampled"]
