"""What a message says: compiled once per version, filled per recipient. Pure: no Flask, no SQL, no clock.

Imports point one way: fill > compile > language > values, and compile > sender > header; the others stand alone.
"""
