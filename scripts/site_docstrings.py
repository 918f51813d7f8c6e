"""A griffe extension: docstrings of the package are plain text whose lines `Privacy: ...` start new paragraphs."""

import importlib
import inspect
import re

import griffe

START = re.compile(r"\n(?=[A-Za-z][\w ,/-]{0,40}: )")
OUTSIDE_CODE = re.compile(r"(`[^`]*`)")


class PlainText(griffe.Extension):
    """Docstrings as paragraphs."""

    def on_object(self, *, obj: griffe.Object, **kwargs) -> None:
        """Rewrites the docstring of one object; a class tells its fields too, a call the keywords that it unpacks."""
        if obj.docstring is not None:
            more = fields(obj) if obj.is_class else keywords(obj) if obj.is_function else ""
            obj.docstring.value = as_markdown(obj.docstring.value) + more


def fields(cls: griffe.Object) -> str:
    """The fields that a class adds, with their defaults."""
    own = [
        member
        for name, member in cls.members.items()
        if member.is_attribute
        and member.annotation
        and not name.startswith("_")
        and name != "spec"  # what the class says about itself
    ]
    told = [f"`{m.name}: {m.annotation}" + (f" = {m.value}`" if m.value is not None else "`") for m in own]
    return "\n\nFields: " + ", ".join(told) + "." if told else ""


def keywords(function: griffe.Object) -> str:
    """The keywords with their defaults, of a function whose source shows the TypedDict of them alone."""
    if not any("Unpack[" in str(parameter.annotation) for parameter in function.parameters):
        return ""
    called = importlib.import_module(function.module.path)
    for name in function.path.removeprefix(f"{function.module.path}.").split("."):
        called = getattr(called, name)
    own = [part for part in inspect.signature(called).parameters.values() if part.kind is part.KEYWORD_ONLY]
    told = [f"`{part.name}`" if part.default is part.empty else f"`{part.name}={part.default!r}`" for part in own]
    return f"\n\nKeywords: {', '.join(told)}."


def as_markdown(text: str) -> str:
    """Markdown that looks like the plain text: indented lines stay code, stars and angle brackets stay themselves."""
    parts = OUTSIDE_CODE.split(START.sub("\n\n", text))
    return "".join(part if part.startswith("`") else _escaped(part) for part in parts)


def _escaped(text: str) -> str:
    return "\n".join(
        line if line.startswith("    ") else re.sub(r"([*\[\]])", r"\\\1", line).replace("<", "&lt;")
        for line in text.split("\n")
    )
