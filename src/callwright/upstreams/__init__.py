"""Model servers, and substitutes for one."""
