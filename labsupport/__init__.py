"""Grounded Answers Lab: the index and the pipeline that the notebooks teach. Names load on first use."""
