"""Whether accuracy changed, in a sentence for each recipe with several training seeds and for each run."""

from __future__ import annotations

from analysis.report.report_data import ReportData
from analysis.report.section import Content, Section
from analysis.report.summary import main_result, recipe_result


def content(report: ReportData) -> Content:
    """The sentences."""
    return Content(
        values={
            "recipe_results": [recipe_result(recipe) for recipe in report.repeated_recipes],
            "main_results": [(run.name, main_result(run, report.rows[run.name])) for run in report.runs],
        }
    )


SECTION = Section(
    order=100,
    title="Runs",
    anchor="runs",
    content=content,
    text="""\
{% macro chip(item) %}<div><span class="chip {{ {"rose": "rose", "fell": "fell"}.get(item.change, "") }}">{{
BASE_MARKS.get(item.change, "·") }} {{ item.change }}</span></div>{% endmacro %}
{% for item in recipe_results %}
<div class="headline recipe">
{{ chip(item) }}
<div>
<p class="name"><b>{{ item.run }}</b></p>
<p class="sentence">{{ item.sentence }}</p>
</div>
</div>
{% endfor %}
{% for run, item in main_results %}
<div class="headline" id="run-{{ run|urlencode }}">
{{ chip(item) }}
<div>
<p class="name"><a href="#run-{{ run|urlencode }}">{{ title_of(run) }}</a></p>
<p class="sentence">{{ item.sentence }}</p>
{% if item.details %}
<p class="details">By benchmark, difference to the base model in points with 95 % intervals:
{% for clause in item.details %}<span>{{ clause }}</span> {% endfor %}</p>
{% endif %}
<p class="details"><a href="samples/index.html#run={{ run|visible|urlencode }}">completions</a> · <a
href="settings.html#settings-{{ loop.index0 }}">settings</a></p>
</div>
</div>
{% endfor %}
""",
)
