"""Reports on comparisons: on a terminal, as files and on pages, with one sentence for each pair of models."""
