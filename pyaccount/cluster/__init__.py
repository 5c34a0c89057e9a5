"""Run jobs and plans on clusters of Dask, that is, in other processes and on other machines. Needs `distributed`.

Takes the address of a scheduler, `local:4`, or a `distributed.Client`. Gives a `Runner` of jobs, and calls functions on
workers. The results are those that this process would have computed, bit for bit: workers with another core are
refused, lost work is repeated, and a runner yields its waves in order.

It must not know what is certified.
"""

from pyaccount.cluster.connection import Cluster, open_cluster

__all__ = ["Cluster", "open_cluster"]
