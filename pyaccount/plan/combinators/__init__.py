"""What is run together: phases in sequence, on one sample, on disjoint parts, and the best of several runs.

Each combinator is a module with a class, whose object has a theorem for each node inside.
"""
