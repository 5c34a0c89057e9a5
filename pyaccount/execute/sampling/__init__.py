"""Judging a mechanism by samples of its privacy loss: from a plan with a sampled reduction to evidence.

`shards` runs the core's sampler with a seed and a deadline; `pilot` estimates and chooses where to sample; `verify`
tests claims by betting or with a fixed number of samples; `others` composes the phases that are not sampled into the curve that
samples are weighed with; `calibrate` walks a ladder of noise multipliers; `confidence`
states ε or δ of a given mechanism; `profile` reads curves off loss histograms; `execute` puts them together; `again` tests the
statement of a finished certificate. Estimates steer, only tests certify: no number of the pilot's enters a guarantee.
"""

from pyaccount.execute.sampling.execute import SampledEvidence, execute_sampled

__all__ = ["SampledEvidence", "execute_sampled"]
