"""Flows from counts alone: many days of how many people were where, nobody followed."""
