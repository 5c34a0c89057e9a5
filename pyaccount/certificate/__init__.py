"""Evidence in, certificate out: the model, the sentence, and the forms people and machines read; and files read back, strictly.

This room words results and decides no policy. What a certificate states was computed before it was made. What is asked of one
afterwards is computed when it is asked: further points of a `Profile` by the engine, from the document inside; the `meaning` of a
profile here, from its points. `consistency` says what in a certificate contradicts the rest of it.
"""

from pyaccount.certificate.certificate import Certificate, Interval, Profile
from pyaccount.certificate.model import CertificateModel

__all__ = ["Certificate", "CertificateModel", "Interval", "Profile"]
