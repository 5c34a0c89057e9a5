"""Certificates and runs in the tools of others: cards, bills of materials, registries, trackers, trainers, and accountants.

Each module is for one format, tool or trainer. For a format it takes a finished certificate and writes what the format has a
place for, in the names of the format; every bound is named as the bound that it is. For a trainer it takes an open run, gives
the trainer the run's batches, clips the gradients of single records, and lets the run release their sum: no trainer draws noise
or accounts for anything here. An accountant has the interface that another library asks, and answers what the certificate of its
document says (`answers`). Packages of others are imported when they are needed. The room reads certificates, runs and the
digests of files; it must not know how a certificate was computed or compared with a policy, and nothing here changes one.
"""
