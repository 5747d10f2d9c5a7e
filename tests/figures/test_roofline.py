"""The roofline puts every pass where it belongs, and no two texts meet."""

import re
from itertools import combinations, product

import pytest

from kvlab.errors import InvalidArgument
from kvlab.figures.roofline import Dot, Roof, roofline
from kvlab.figures.traffic import traffic_bar

from .conftest import Drawing

H100 = Roof("H100", 989e12, 3.35e12)
CPU = Roof("cpu", 33e9, 14.5e9)


def circles(picture: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    return [(float(x), float(y)) for x, y in found]


def test_more_work_for_a_byte_is_further_right_and_faster_is_higher() -> None:
    dots = [Dot("slow", 0.5, 2e9), Dot("fast", 0.5001, 6e9), Dot("right", 20, 2e10)]
    (x1, y1), (x2, y2), (x3, y3) = circles(roofline(CPU, dots))
    assert x1 < x2 < x3 and y1 > y2 > y3


def test_a_dot_without_a_rate_lies_on_the_roof() -> None:
    on_slope, on_flat = Dot("a", 1.0), Dot("b", 5000.0)
    same = [Dot("a", 1.0, 3.35e12), Dot("b", 5000.0, 989e12)]
    assert circles(roofline(H100, [on_slope, on_flat])) == circles(roofline(H100, same))


def test_the_label_says_what_each_pass_waits_for() -> None:
    label = roofline(H100, [Dot("decode", 1.0), Dot("prefill", 4000.0)]).label
    assert "decode at 1 waits for memory" in label
    assert "prefill at 4K waits for arithmetic" in label


@pytest.mark.parametrize(
    ("roof", "low", "high", "width"),
    list(product((H100, CPU), (0.4, 2.2, 20.0), (21.0, 300.0, 9000.0), (620, 960))),
)
def test_texts_stay_inside_and_apart(roof: Roof, low: float, high: float, width: int) -> None:
    dots = [Dot("prefill, 8,192", high, None, "query", "P")]
    dots.append(Dot("decode, batch 16", low, None, "value", "D"))
    moved = ((16, "14.96 GiB (16.06 GB)"), (17, "16.00 GiB (17.18 GB)"))
    drawing = Drawing(str(roofline(roof, dots, title="T", width=width, height=220, traffic=moved)))
    for text in drawing.texts():
        assert text.left >= 0 and text.right <= drawing.width + 0.5, text
        assert text.top >= 0 and text.bottom <= drawing.height, text
    for one, other in combinations(drawing.texts(), 2):
        across, down = one.overlap(other)
        assert across <= 0.5 or down <= 0.5, (one, other)


def test_the_bar_is_to_scale_and_an_empty_part_is_not_drawn() -> None:
    drawing = Drawing(str(traffic_bar(weights=(30, "30 GB"), cache=(10, "10 GB"))))
    first, second = drawing.cells()
    assert (first.right - first.left) == pytest.approx(3 * (second.right - second.left), rel=0.01)
    assert len(Drawing(str(traffic_bar(weights=(30, "30 GB"), cache=(0, "0")))).cells()) == 1


def test_the_same_numbers_give_the_same_bytes_and_nonsense_is_named() -> None:
    assert str(roofline(H100, [Dot("a", 2.0)])) == str(roofline(H100, [Dot("a", 2.0)]))
    with pytest.raises(InvalidArgument, match="intensity"):
        roofline(H100, [Dot("a", 0.0)])
