"""New documents: from a few answers to a commented mechanism document.

This room takes answers by name, as the options of `pyaccount init` give them, knows which ones a sampler needs (`interview`), and
gives YAML text whose comments are the models' own descriptions. Which combinations it offers is found by asking the plan, so
that no refusal is written down twice. It must not know where answers come from, nor where the text goes.
"""
