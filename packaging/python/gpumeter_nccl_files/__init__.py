"""gpumeter-nccl-files: files that jobs write about their NCCL, as a page of the daemon. The standard library only."""
