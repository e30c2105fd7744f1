"""Where processes may disagree, decided from the finished facts."""
