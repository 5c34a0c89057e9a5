"""Writes new mechanism documents, with comments, from a few answers.

This room takes answers by name, as the options of `pyaccount init` provide them. It knows which answers a sampler needs
(`interview`), and returns YAML text whose comments are the descriptions of the models. It asks the plan which
combinations can be analysed, so that no rule exists twice. It must not know where answers come from, nor where the text
goes.
"""
