"""Bounds what an attacker can do, from points of a privacy profile: trade-off curve, Gaussian μ, and budgets of risk.

This room takes numbers (upper and lower bounds on δ at some ε of each direction) and gives bounds, each with its proof
in the same file. It knows what a document says about a risk budget; it knows neither mechanisms nor how the numbers
were computed.
"""
