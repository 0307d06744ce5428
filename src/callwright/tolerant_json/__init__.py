"""JSON as models write it: broken, cut, in pieces. Knows no tools and no schemas."""
