"""Noise laws and keys. Every noise draw of the package goes through `jaxdp.noise.add`."""
