"""Questions about a cluster and changes to it, without a terminal; shared by command line, console and Connect."""
