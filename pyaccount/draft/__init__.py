"""New documents: from a few answers to a commented mechanism document.

This package takes answers by name, as the options of `pyaccount init` give them. It knows which answers a sampler needs
(`interview`), and returns YAML text whose comments are the descriptions of the models. It asks the plan which combinations
can be analysed, so that no refusal is written down twice. It must not know where answers come from, nor where the text goes.
"""
