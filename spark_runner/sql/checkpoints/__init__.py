"""The folders in which streaming queries keep their progress: who may use one, and how it is put away."""
