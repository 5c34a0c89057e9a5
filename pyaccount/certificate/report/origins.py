"""The notes at the end of a page that explain where its numbers come from, and what the page alone is worth."""

from __future__ import annotations

#: What a page of a certificate alone is worth.
AS_STATED = "The figures are as stated in the certificate and were not recomputed here: pyaccount verify does that."
#: What such a page was made from.
MADE_FROM = "a certificate in JSON, which is what counts; this page is a view of it"

ORIGINS: dict[str, str] = {
    "document": "Written in the document, or following from what it says.",
    "solved": "Found by solving for the document's blank, and certified; where digits are left out, σ is rounded up: more "
    "noise is no worse.",
    "grid": "The grid on which the profile is told: the document's, or shares of the certified ε.",
    "rates": "Rates at which reports state attacks, the same in every report.",
    "composition": "Composition of the rounds' dominating pairs (or convex bounds), bounded from above and from below; the "
    "evidence lists each composition, the error budget each source of error.",
    "test": "A randomised test on samples of the privacy loss; the evidence lists each test.",
    "bets": "Bets on samples of the privacy loss that smaller values would lose; a lower end from them is wrong with at "
    "most the probability stated beside the guarantee.",
    "histogram": "Bounds read off histograms of sampled privacy losses, each with the pointwise failure probability of the "
    "evidence.",
    "measure": "Points of the profile of the same composition, more and more where they decide, each bounded from above and "
    "below; between them by convexity. The width of the interval is a line of the error budget.",
    "samples": "The mean of samples: an estimate, on which no bound here rests.",
    "pilot": "The pilot of a plan: estimates from a few samples, on which no bound rests.",
    "search": "The search for the matrix: means of samples, or arithmetic in double precision where the run is not "
    "sampled. Estimates, on which no bound here rests.",
    "attack": "Follows from the certified points of the profile: with δ₁ at ε in the direction remove and δ₂ in the direction "
    "add, every test has TPR ≤ e^ε·FPR + δ₁ and TPR ≤ 1 − e^(−ε)(1 − δ₂ − FPR), its true- and false-positive rates.",
    "gaussian": "The profile compared with that of one Gaussian mechanism, N(μ, 1) against N(0, 1).",
    "contrast": "The same run analysed without the randomness of its batches.",
    "moment": "Chernoff's bound from a moment of the likelihood ratio where a record is removed, and a bound on the weights of a "
    "proposal where one is added; no sample enters either.",
    "lemma": "The black-box lemma for groups, applied to the guarantee for one record.",
    "matrix": "Computed from the strategy matrix in double precision.",
    "budget": "Bounded beside the computation that makes the error, on the safe side.",
    "record": "Recorded while the certificate was made.",
    "training": "Read from the record of the training run.",
    "compared": "Read from the certificate of that name, whose own report says where it comes from.",
    "amplification": "The theorem on amplification by sampling named here, in closed form.",
}
