"""Builds certificates from evidence: the model, the statement, and the forms for people and programs.

It also reads certificate files, strictly. This room words results and decides no policy. What a certificate states is
computed before the certificate is made. Two things are computed on request: further points of a `Profile`, by the
engine from the document inside, and the `meaning` of a profile, from its points. `consistency` reports what in a
certificate contradicts the rest of it.
"""

from pyaccount.certificate.certificate import Certificate, Interval, Profile
from pyaccount.records.certificate import CertificateModel

__all__ = ["Certificate", "CertificateModel", "Interval", "Profile"]
