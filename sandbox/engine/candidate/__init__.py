"""The roles that run the code under test, apart from any test."""
