"""The run as accounted: batches, correlated noise and a record of what was done.

The room takes a certificate, or a document without a blank, and a secret key, and gives the very run that the certificate is
about: `batches` draws who takes part in a round, `noise` the rows of C⁻¹Z that are added to its sum, `key` is where both come
from. Batches and noise are functions of the key and of their coordinates. The room knows certificates and documents, never how
they were computed; it needs numpy and the compiled core, and deep-learning frameworks only in modules of their own.
"""

from __future__ import annotations

from pyaccount.training.key import RunKey
from pyaccount.training.run import TrainingRun

__all__ = ["RunKey", "TrainingRun"]
