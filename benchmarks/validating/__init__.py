"""What docs/validation.md shows: questions, their oracles, and the page. `validation.py` beside this folder asks and writes."""
