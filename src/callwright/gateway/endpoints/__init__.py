"""What is answered under each path."""
