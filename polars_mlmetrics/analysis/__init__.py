"""The functions that give numbers: evaluate, finish, confusion, worst."""
