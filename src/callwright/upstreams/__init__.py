"""Model servers, and what stands in for one."""
