"""Strategy matrices: which C correlates the noise, and the error that training has with it.

This room takes plain numbers, arrays and the path of a file. It gives lower-triangular matrices with non-negative
entries (Toeplitz ones as their coefficients, dense ones as arrays), their column norms, and their errors under a
workload for noise of unit scale. It must not know documents, mechanisms, samplers or privacy: any matrix from here is a
valid strategy, and how it was found affects only its accuracy.
"""
