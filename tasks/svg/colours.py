"""Names of colours, by hue, lightness and saturation, wide enough that a person would use the same word."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tasks.svg.regions import Mask, Part, Picture, Pixels

# Degrees of hue: from, up to
HUES = {
    "orange": (16, 46),
    "yellow": (46, 68),
    "green": (68, 165),
    "blue": (185, 256),
    "purple": (256, 318),
    "red": (345, 376),
}
DARK, PALE, GREY = 0.12, 0.93, 0.15  # lightness of black below, of white above; saturation of grey below
OF_COLOUR = 0.7  # share of a part's pixels that has to have its colour
LIGHT = 0.58  # lightness of what is called light


def _hue_lightness_saturation(colours: Pixels) -> npt.NDArray[np.float64]:
    """Hue in degrees, lightness and saturation from 0 to 1, of shape (…, 3)."""
    rgb = colours.astype(float) / 255
    high, low = rgb.max(-1), rgb.min(-1)
    span = high - low
    lightness = (high + low) / 2
    red, green, blue = np.moveaxis(rgb, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(span > 0, span / (1 - np.abs(2 * lightness - 1)), 0.0)
        hue = np.select(
            [span == 0, high == red, high == green],
            [0.0, (green - blue) / span % 6, (blue - red) / span + 2],
            (red - green) / span + 4,
        )
    return np.stack([np.nan_to_num(hue) * 60, lightness, np.nan_to_num(saturation)], -1)


def pixels_named(colours: Pixels, name: str) -> Mask:
    """Which colours a person would call so.

    Args:
        colours: of shape (…, 3).
        name: black, white, a key of HUES, or one of them after `light `.
    """
    hue, lightness, saturation = np.moveaxis(_hue_lightness_saturation(colours), -1, 0)
    if name == "black":
        return np.asarray((lightness < 2 * DARK) & ((saturation < 2 * GREY) | (lightness < DARK)))
    if name == "white":
        return np.asarray(lightness > PALE)
    low, high = HUES[name.removeprefix("light ")]
    coloured = (saturation >= GREY) & (lightness >= DARK) & (lightness <= PALE)
    if name.startswith("light "):
        coloured &= lightness >= LIGHT
    return np.asarray(coloured & ((hue - low) % 360 < high - low))


def share_named(colours: Pixels, name: str) -> float:
    """The share of some colours, of shape (n, 3), that have this name; 0 of none."""
    return float(pixels_named(colours, name).mean()) if len(colours) else 0.0


def has_colour(picture: Picture, part: Part, name: str) -> bool:
    """Whether most of what is drawn of a part has this colour; of a filled one, most of its inside."""
    inside = part.own & part.eroded(0.06)
    filled = inside.sum() > 0.5 * part.eroded(0.06).sum()
    return share_named(picture.rgb[inside if filled else part.own], name) >= (OF_COLOUR if filled else 0.5)
