"""Strategy matrices: which C correlates the noise, and how accurate the training it gives is.

The room takes plain numbers, arrays and the path of a file. It gives lower-triangular matrices with non-negative
entries (Toeplitz ones as their coefficients, dense ones as arrays), their column norms and their errors under a workload for
noise of unit scale. It must not know documents, mechanisms, samplers or privacy: any matrix from here is a valid
strategy, and only its accuracy depends on how it was found.
"""
