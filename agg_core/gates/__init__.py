"""Entries and exits: who went where, from how many passed the gates of each station."""
