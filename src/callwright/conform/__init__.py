"""A conformance suite for tool calling: requests to any compatible server, judged by the published APIs."""
