"""Certify mechanisms by samples of their privacy loss: takes a plan with a sampled reduction, fills the record.

`shards` runs the core's sampler with a seed and a deadline. `estimates` and `proposals` choose where to sample;
`betting_choice` chooses this and the betting fractions for a test. `tests_of_claims` says which δ₀ is tested for the δ
stated, and tests claims by betting (the core's `claims::betting` computes the wealth) or with a fixed number of samples.
`composed_profile` composes the phases that are not sampled into the curve with which samples are weighed; `session` holds all
of these for one execution. `fixed_sequence` chooses the grid and tests its claims in sequence: `calibrate` for the noise
multiplier, `confidence` for an ε or δ of a given mechanism. `pilot` finds where grids begin. `wealth` has the bets for lower
ends, which are made on the samples of the tests, `profile` computes curves from loss histograms, and `beside` says what is
drawn for both beside the tests. `evidence` fills the certificate's record, and `execute` chooses by the document's blank.
`forecast` estimates the cost, and `retest` tests the statement of a finished certificate. Estimates only steer, and only
tests certify: no guarantee depends on a number of the pilot.
"""

from pyaccount.execute.sampling.execute import execute_sampled

__all__ = ["execute_sampled"]
