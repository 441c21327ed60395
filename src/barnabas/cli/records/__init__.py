"""Reading and writing records on the command line."""
