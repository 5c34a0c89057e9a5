"""Makes one document from several: the joint document of runs on the same data, whose certificate is their joint guarantee.

This room takes certificates and documents. It gives a document with the phases of all of them, and the rules that were used in
words. A certificate whose rounds compose is taken by the phases of its document, with what was solved filled in, so that it is
composed exactly; one from samples by proven points of its profile, as a stated mechanism with its failure probability. This room
bounds nothing: every theorem belongs to the plan, and a joint document is certified as any other. It must not import the compiled
core, and it does not know ledgers or commands.
"""

from pyaccount.composing.joining import Joint, joint, joint_document

__all__ = ["Joint", "joint", "joint_document"]
