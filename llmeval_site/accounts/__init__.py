"""User accounts: sign-in limits, tokens for REST, and the account page."""
