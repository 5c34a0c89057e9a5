"""Turn a document into a plan: the theorem for each of its parts, and the rounds that the core composes.

`samplers`, `matrices` and `noises` have a class for each kind. `reduction` defines what they produce. `compiling`
chooses among them, and `compiled` holds the result: the theorems in words and, at a value of the blank, in numbers.
`common` has words and refusals that they share.
All policy is in this room: which theorem applies, what is refused and why. It computes matrices, sensitivities and the
parameters of rounds. It computes ε and δ only for one draw, by closed forms (`amplification`). `execute` computes what
a plan asks for, `certificate` states the result, and `running` does both.
"""
