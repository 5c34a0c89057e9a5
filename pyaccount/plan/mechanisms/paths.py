"""The lemma of paths: what leads from one output law to another in steps that are purely private is dominated by Laplace
noise.

**Lemma.** Let M_τ, 0 ≤ τ ≤ θ, be output laws with Pr[M_{τ+t} ∈ S] ≥ e^{−t} Pr[M_τ ∈ S] for all sets S and t ≥ 0. Then
Lap(0, 1) against Lap(θ, 1) dominates M_0 against M_θ: for every α,

    Pr[M_0 ∈ S] − α Pr[M_θ ∈ S] ≤ H_α(Lap(0, 1)‖Lap(θ, 1)), which is 1 − √α·e^{−θ/2} for |ln α| ≤ θ.

**Proof.** Let φ(τ) = Pr[M_τ ∈ S] and u = 1 − φ(0). The hypothesis for S and for its complement says that φ falls at
most by the factor e^{−t}, and 1 − φ grows at most by e^t, over every t; so φ never jumps down. If u ≥ ½, φ(θ) ≥
e^{−θ}(1 − u). If u < ½ and φ stays above ½, 1 − φ(θ) ≤ e^θ u and φ(θ) ≥ ½. Otherwise φ(τ) = ½ for the first τ ≤ θ at
which φ is not above it, so that e^τ ≥ 1/(2u), and φ(θ) ≥ ½e^{−(θ−τ)} ≥ e^{−θ}/(4u). Those are the three pieces of the
trade-off function of the Laplace pair: with type I error u, the type II error is at least 1 − e^θ u for u ≤ e^{−θ}/2,
e^{−θ}/(4u) up to ½, and e^{−θ}(1 − u) from there on (Dong, Roth & Su 2022, Section 2); in the second case φ(θ) is at
least the first two pieces, of which the second is at most ½. A bound on the trade-off function is one on H_α for all
α. ∎

The same holds for d steps of length η, each of which changes probabilities at most by e^{±η}: then φ after a step is
at least f(φ) = max(e^{−η} φ, 1 − e^η (1 − φ)), and after d steps the d-fold iterate of f. Discrete Laplace noise,
shifted by d on a lattice with η = 1/b, attains it: for thresholds t ≥ d each step multiplies Pr[X > t] by e^η until
the median is crossed, and Pr[X ≤ t] by e^{−η} from there on. So discrete Laplace noise at the distance d dominates
what takes d such steps.

**What follows.** (1) Numbers with Laplace noise of scale b (discrete Laplace noise on a lattice) that a record
changes by Δ in total, Σ_j |Δ_j| ≤ Δ, are dominated by one number that changes by Δ: move along the segment from one
to the other (in steps of the lattice, one coordinate at a time); the log density of the noise changes at most by 1/b
for each unit. (2) The largest of utilities with noise of bounded hazard rate (`plan.mechanisms.selections`).
"""
