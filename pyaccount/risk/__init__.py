"""What an attacker can do at most, from points of a privacy profile: trade-off curve, Gaussian μ, and budgets of both.

Takes numbers (δ at most, and at least, at some ε of each direction) and gives bounds, each with its proof beside it. Knows what a
document says of a budget; knows neither mechanisms nor how the numbers were computed.
"""
