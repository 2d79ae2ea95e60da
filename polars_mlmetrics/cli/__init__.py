"""The command `mlm`: every command is one call of the library. `mlm_command` reads the command line."""
