"""Clusters of Dask: who runs jobs and plans on other processes and machines. Needs `distributed`.

Takes the address of a scheduler, `local:4`, or a `distributed.Client`. Gives a `Runner` of jobs, and calls of functions, that are
done by workers. What comes back is what this process would have computed, bit for bit: workers with another core are refused,
lost work is done once more, and whoever uses a runner takes its waves in order.

It must not know what is certified.
"""

from pyaccount.cluster.connection import Cluster, open_cluster

__all__ = ["Cluster", "open_cluster"]
