"""The configuration of a gateway, and the models that it makes."""
