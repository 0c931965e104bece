"""One file per kind of input; seeds and words of each are in files of its name."""
