"""gpumeter-flight-recorder: dumps of PyTorch's flight recorder as a page of the daemon. The standard library only."""
