"""Proxies in the tests' process for objects of the code under test."""
