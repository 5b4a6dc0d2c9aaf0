"""`gpumeter import`: results of other benchmarks, as lines for the daemon's socket of jobs. One module a format; the standard library only."""
