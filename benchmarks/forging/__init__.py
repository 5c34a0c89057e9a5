"""How certificates are forged and forgeries judged, for `benchmarks/forge.py`.

`changes.py` changes trees of JSON, and knows nothing of certificates; `certificates.py` alone knows where a certificate has
its document and its claim. `starts.py` has the certificates that forgeries begin with, `checking.py` asks the checker, and
`house.py` says what is true, by the core. Nothing here reads a document a second time: what a document means is asked of the
house, or known because an adversary built it.
"""
