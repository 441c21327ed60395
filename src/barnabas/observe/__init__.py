"""Log lines, metric families, histograms, and the parts of a request's latency."""
