"""Builders: plain functions with full defaults that put rows into a test's database."""
