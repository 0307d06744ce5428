"""OpenAI's format of tools, choices and messages, as the library and the gateway read and write them. No HTTP."""
