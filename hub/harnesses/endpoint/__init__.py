"""The OpenAI-compatible endpoint of agent programs: requests to messages, and messages to replies."""
