"""Proxies: objects in the tests' process that stand for objects of the code under test."""
