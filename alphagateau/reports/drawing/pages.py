"""Turns a template and plain data into one self-contained file: every text is escaped, nothing is fetched."""

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from typing import Any

from markupsafe import Markup, escape

UNSHOWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def render(template: str, **data: Any) -> str:
    """A file of `templates/` filled with data; U+FFFD for characters that HTML and SVG forbid."""
    return UNSHOWABLE.sub("\ufffd", environment().get_template(template).render(data))


@cache
def environment() -> Any:
    """jinja2's Environment of the templates; a name without data is an error."""
    import jinja2  # for what writes a page alone, as commands import the pages

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("alphagateau.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = breakable
    made.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    files = (resources.files("alphagateau.reports").joinpath(name) for name in ("page.js", "page.css", "chart.css"))
    script, page_css, chart_css = (file.read_text(encoding="utf-8") for file in files)
    made.globals["script"] = Markup(script)
    made.globals["script_sha256"] = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    made.globals["page_css"] = Markup(page_css + chart_css)
    made.globals["light_chart_css"] = Markup(without_variables(chart_css, page_css))
    for name in ("parts", "charts", "diagram"):  # macros that every page may use
        made.globals[name] = made.get_template(f"{name}.html").module
    return made


def without_variables(css: str, theme: str) -> str:
    """Rules with each var(--x) replaced by its value in the first block of `theme`, for SVG viewers without var."""
    values = dict(re.findall(r"(--[\w-]+): ([^;]+);", theme.partition("}")[0]))
    return re.sub(r"var\((--[\w-]+)\)", lambda found: values[found[1]], css)


def breakable(value: object) -> Markup:
    """Text that a narrow column may also break after a slash, underscore or dot that is not near either end."""
    return Markup(re.sub(r"(?<=.{10}[/_])(?=.{4})|(?<=.{10}\.)(?=[a-z]{4})", "<wbr>", escape(value)))
