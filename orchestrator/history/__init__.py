"""What the last runs of each name took: a ring of fifty per name, for people and for tuning."""
