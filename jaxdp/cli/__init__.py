"""The command line: one thin file per command, listed in `jaxdp.cli.main`."""
