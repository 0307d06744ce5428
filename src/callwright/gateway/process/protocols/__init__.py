"""How bytes become requests and frames: uvicorn's protocols, with bounds on what they take before anybody has asked."""
