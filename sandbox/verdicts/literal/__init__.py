"""Evaluation of literal asserts and of {args, kwargs, expect} in this process, without a judge."""
