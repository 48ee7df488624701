"""The 23 prompts of the document (its section 2.2), and the rule of each that geometry can judge.

`wording` is the prompt as printed, `printed` its row in results/reference/svg_drawings.csv.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Prompt(NamedTuple):
    """A prompt of the document."""

    name: str
    wording: str
    printed: str
    drawing: dict[str, Any] | None = None  # rule and arguments; None: no rule judges it
    unjudged: str = ""  # why


_FREE = "what it has to look like is left open"
PROMPTS = (
    Prompt("hexagon", "正六边形", "regular hexagon", {"rule": "hexagon"}),
    Prompt("trapezoid", "梯形", "trapezoid", {"rule": "trapezoid"}),
    Prompt("dashed_square", "虚线边框正方形", "square with a dashed border", {"rule": "dashed_square"}),
    Prompt("ellipse", "Light green ellipse", "light green ellipse", {"rule": "ellipse"}),
    Prompt("cross", "十字架", "cross", {"rule": "cross"}),
    Prompt("mercedes", "奔驰车标", "Mercedes logo", {"rule": "mercedes"}),
    Prompt("bmw", "BMW 车标", "BMW logo", {"rule": "bmw"}),
    Prompt("ground", "电路图接地符号", "ground symbol of a circuit", {"rule": "ground"}),
    Prompt("star", "五角星", "five-pointed star", {"rule": "star"}),
    Prompt("hexagram", "紫色六芒星", "purple hexagram", {"rule": "hexagram"}),
    Prompt("gear", "齿轮", "gear", None, "the document has no figures for it"),
    Prompt(
        "prohibition",
        "禁行标志 (红圈 + 单斜杠)",
        "prohibition sign (red circle, one diagonal)",
        {"rule": "prohibition"},
    ),
    Prompt(
        "rating",
        "五星评分 ( 3 颗实星 2 颗空心)",
        "rating of five stars (three filled, two empty)",
        {"rule": "rating"},
    ),
    Prompt("bars_3", "三格 WIFI 信号阶梯", "WiFi signal of three bars", {"rule": "bars", "count": 3}),
    Prompt("battery", "电池图标 (20% 红色填充)", "battery icon (20% filled, red)", {"rule": "battery"}),
    Prompt("bars_4", "四格 WIFI 信号阶梯", "WiFi signal of four bars", {"rule": "bars", "count": 4}),
    Prompt("first_aid", "急救箱", "first aid kit", {"rule": "first_aid"}),
    Prompt("dollar", "美元符号", "dollar sign", None, "a letter, whose form depends on the font"),
    Prompt("yuan", "人民币符号", "yuan sign", None, "a letter, whose form depends on the font"),
    Prompt("landscape", "彩色山湖风景(landscape)", "coloured landscape with mountain and lake", None, _FREE),
    Prompt("line_chart", "折线图(温度变化)", "line chart (temperature)", None, _FREE),
    Prompt("city", "夜间城市景观", "city at night", None, _FREE),
    Prompt("clock", "现代时钟面盘", "modern clock face", {"rule": "clock"}),
)
JUDGED = tuple(prompt for prompt in PROMPTS if prompt.drawing is not None)
