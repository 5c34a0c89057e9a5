"""Certificates in the forms that other tools keep: model cards, bills of materials, registries and trackers of experiments.

Each module is for one format or tool. It takes a finished certificate and writes what the format has a place for, in the names of
the format; every bound is named as the bound that it is. Packages of others are imported when they are needed. The room reads
certificates and the digests of files; it must not know how a certificate was computed or compared with a policy, and nothing here
changes a certificate.
"""
