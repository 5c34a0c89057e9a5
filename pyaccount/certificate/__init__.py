"""Evidence in, certificate out: the model, the sentence, and the forms people and machines read.

This room words results; it computes nothing and decides no policy.
"""

from pyaccount.certificate.certificate import Certificate, Interval, Profile
from pyaccount.certificate.model import CertificateModel

__all__ = ["Certificate", "CertificateModel", "Interval", "Profile"]
