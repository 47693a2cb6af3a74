"""Sendonce: a console that sends e-mail exactly as often as it should be sent. Importing it starts nothing."""
