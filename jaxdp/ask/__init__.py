"""One call from a table to an answer: `jaxdp.test`, `jaxdp.discover`, `jaxdp.mic`, `jaxdp.Session`, and commands."""
