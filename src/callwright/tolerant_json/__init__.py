"""JSON as models write it: broken, truncated, streamed in pieces. Knows neither tools nor schemas."""
