"""The version of the package."""


def version() -> str:
    """The installed version; "0+unknown" in a copy of the sources that was not installed."""
    from importlib import metadata

    try:
        return metadata.version("jaxdp-dependence")
    except metadata.PackageNotFoundError:
        return "0+unknown"
