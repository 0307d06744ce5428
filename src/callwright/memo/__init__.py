"""Memory of earlier values, so that nothing is computed twice."""
