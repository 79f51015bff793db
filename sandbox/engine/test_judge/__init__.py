"""Test judge: the roles that run tests against a candidate and report a verdict. No language model is involved."""
