"""The functions that give numbers, one file each."""
