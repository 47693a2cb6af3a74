"""What a message says: compiled once per version, filled per recipient. Pure: no Flask, no SQL, no clock.

The order of imports inside is fill > compile > (language > values), (sender > header), body, text, source.
"""
