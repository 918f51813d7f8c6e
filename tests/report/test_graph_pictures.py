"""Pictures of graphs: boxes never overlap, arrows point down, the legend names what the picture shows and no more."""

import numpy as np
import pytest

from jaxdp.report import figures, graphs
from jaxdp.report.layered import layout

WORDS = ("age", "blood pressure", "smoker", "x", "a rather long name of one column")


def random_graph(d, seed, per_node=1.4):
    """A directed acyclic graph of d nodes with names of uneven length."""
    rng = np.random.default_rng(seed)
    order, arcs = rng.permutation(d), np.zeros((d, d), bool)
    for place in range(1, d):
        for parent in rng.choice(order[:place], min(place, rng.poisson(per_node)), replace=False):
            arcs[parent, order[place]] = True
    return [f"{WORDS[i % len(WORDS)]} {i}" for i in range(d)], arcs


def boxes(figure, axes):
    """Corners (n, 4) of the boxes around the names, in pixels."""
    renderer = figure.canvas.get_renderer()
    figure.draw_without_rendering()
    found = [text.get_bbox_patch().get_window_extent(renderer) for text in axes.texts if text.get_bbox_patch()]
    return np.array([[box.x0, box.y0, box.x1, box.y1] for box in found])


@pytest.mark.parametrize(("d", "seed"), [(1, 0), (2, 1), (8, 2), (20, 3), (37, 4), (37, 5), (60, 6)])
def test_no_two_boxes_overlap_and_all_lie_in_the_picture(d, seed):
    names, arcs = random_graph(d, seed)
    figure, axes = graphs.picture(names, arcs, title="t")
    found = boxes(figure, axes)
    assert len(found) == d
    for i, box in enumerate(found):
        others = np.delete(found, i, axis=0)
        apart = (
            (others[:, 0] >= box[2]) | (others[:, 2] <= box[0]) | (others[:, 1] >= box[3]) | (others[:, 3] <= box[1])
        )
        assert apart.all()
    width, height = figure.canvas.get_width_height()
    assert (found[:, :2] >= 0).all()
    assert (found[:, 2] <= width).all()
    assert (found[:, 3] <= height).all()


@pytest.mark.parametrize("seed", range(5))
def test_arrows_point_down_and_every_edge_is_drawn(seed):
    _, arcs = random_graph(25, seed)
    placed = layout(arcs, np.ones(25))
    assert set(placed.bends) == {(int(i), int(j)) for i, j in np.argwhere(arcs)}
    for i, j in placed.bends:
        assert placed.places[i, 1] > placed.places[j, 1]


def test_a_circle_of_arrows_and_open_edges_are_drawn():
    arcs = np.zeros((4, 4), bool)
    arcs[0, 1] = arcs[1, 2] = arcs[2, 0] = True
    arcs[2, 3] = arcs[3, 2] = True
    placed = layout(arcs, np.ones(4))
    assert {frozenset(edge) for edge in placed.bends} == {frozenset(e) for e in ((0, 1), (1, 2), (0, 2), (2, 3))}


def test_the_legend_names_what_is_shown():
    arcs = np.zeros((3, 3), bool)
    arcs[0, 1] = True
    texts = legend(["a", "b", "c"], arcs)
    assert texts == ["arrow: direction found"]
    truth = np.zeros((3, 3), bool)
    truth[1, 2] = True
    texts = legend(["a", "b", "c"], arcs, truth=truth, q_values=np.zeros((3, 3)))
    assert texts[:2] == ["found, not in the true graph", "in the true graph, not found"]
    assert "wider: smaller q-value (widest: 1e-6)" in texts
    assert not {"found, in the true graph", "found, direction wrong", "required, not tested"} & set(texts)


def legend(names, arcs, **options):
    _, axes = graphs.picture(names, arcs, **options)
    return [text.get_text() for text in axes.get_legend().get_texts()]


def styles(axes):
    """Colour and width of each line; heads are patches of their own."""
    from matplotlib import colors
    from matplotlib.patches import ArrowStyle

    lines = [patch for patch in axes.patches if isinstance(patch.get_arrowstyle(), ArrowStyle.Curve)]
    return [(colors.to_hex(patch.get_edgecolor()), round(patch.get_linewidth(), 2)) for patch in lines]


def test_wider_lines_have_smaller_q_values():
    """The q-values of edges are at most 0.05: a width that is linear in them tells nothing."""
    arcs = np.triu(np.ones((4, 4), bool), 1)
    q_values = np.full((4, 4), np.nan)
    for pair, q_value in {(0, 1): 0.9, (0, 2): 0.05, (0, 3): 0.001, (1, 2): 1e-6, (1, 3): 0.0}.items():
        q_values[pair] = q_value
    _, axes = graphs.picture(list("abcd"), arcs, q_values=q_values)
    assert sorted(width for _, width in styles(axes)) == [0.9, 0.9, 1.5, 1.73, 3.2, 3.2]


def test_a_required_edge_is_marked_and_has_no_width_of_its_own():
    """It was drawn as wide as the surest edge."""
    arcs = np.zeros((3, 3), bool)
    arcs[0, 1] = arcs[1, 2] = True
    q_values = np.full((3, 3), np.nan)
    q_values[1, 2] = q_values[2, 1] = 1e-9
    required = np.zeros((3, 3), bool)
    required[0, 1] = required[1, 0] = True
    _, axes = graphs.picture(list("abc"), arcs, q_values=q_values, required=required)
    assert [width for _, width in styles(axes)] == [1.5, 3.2]
    assert len(axes.lines) == 1
    assert "required, not tested" in [text.get_text() for text in axes.get_legend().get_texts()]
    _, axes = graphs.picture(list("abc"), arcs, required=required)
    assert "wider" not in " ".join(text.get_text() for text in axes.get_legend().get_texts())


@pytest.mark.parametrize(
    ("known", "told"), [((), "found"), ((0,), "found or known"), ((0, 1), "known beforehand")], ids=str
)
def test_the_legend_says_where_directions_come_from(known, told):
    arcs, settled = np.zeros((3, 3), bool), np.zeros((3, 3), bool)
    arcs[0, 2] = arcs[1, 2] = True
    settled[list(known), 2] = True
    assert legend(list("abc"), arcs, settled=settled) == [f"arrow: direction {told}"]


def test_a_wrong_direction_has_its_own_look():
    """A reversed arrow was drawn as one of the true graph."""
    arcs, truth = np.zeros((5, 5), bool), np.zeros((5, 5), bool)
    arcs[0, 1] = arcs[2, 1] = arcs[2, 3] = arcs[3, 4] = arcs[4, 3] = True
    truth[0, 1] = truth[1, 2] = truth[2, 3] = truth[3, 2] = truth[3, 4] = True
    _, axes = graphs.picture(list("abcde"), arcs, truth=truth)
    drawn = [color for color, _ in styles(axes)]
    assert sorted(drawn) == sorted([figures.BLUE, figures.ORANGE, figures.ORANGE, figures.BLUE])
    texts = [text.get_text() for text in axes.get_legend().get_texts()]
    assert texts[:2] == ["found, in the true graph", "found, direction wrong"]


def test_dashes_are_as_long_on_wide_lines():
    """They grew with the width, so that a short wide edge looked solid."""
    for width in (0.9, 3.2):
        _, lengths = graphs._dashes("turned", width)
        assert sum(lengths) * width == pytest.approx(13.0 + 2 * width)


@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.parametrize("known", [1, 2])
def test_a_full_legend_fits_below_the_boxes(compared, known):
    arcs, truth, settled = (np.zeros((6, 6), bool) for _ in range(3))
    arcs[0, 1] = arcs[1, 2] = arcs[2, 3] = arcs[3, 2] = arcs[3, 4] = True
    truth[0, 1] = truth[2, 1] = truth[4, 5] = True
    settled[0, 1] = settled[1, 2] = settled[3, 4] = True
    settled[0, 1] = known == 2
    options = {"q_values": np.full((6, 6), 0.01), "required": arcs | arcs.T, "settled": settled}
    figure, axes = graphs.picture(list("abcdef"), arcs, truth=truth if compared else None, **options)
    found = boxes(figure, axes)
    room = axes.get_legend().get_window_extent(figure.canvas.get_renderer())
    assert room.x0 >= 0
    assert room.x1 <= figure.canvas.get_width_height()[0]
    assert room.y1 <= found[:, 1].min()
    assert len(axes.get_legend().get_texts()) == (8 if compared else 4)


def test_columns_without_an_edge_are_wrapped_below_the_others():
    """Sixty of them stood in one row, which no screen shows."""
    arcs = np.zeros((60, 60), bool)
    arcs[7, 30] = True
    placed = layout(arcs, np.full(60, 0.6)).places
    assert np.ptp(placed[:, 0]) < 10.0
    assert placed[30, 1] > np.delete(placed, (7, 30), axis=0)[:, 1].max()
    assert len({tuple(place) for place in np.round(placed, 6)}) == 60


@pytest.mark.parametrize("middle", ["the same words {} in the middle", "{}"])
def test_long_names_that_read_alike_when_cut_are_told_apart(middle):
    names = [f"Laboratory value, {middle.format(k)}, of all the patients of this ward" for k in range(3)]
    short = graphs._short([*names, "age", "x" * 40])
    assert len(set(short)) == 5
    assert max(map(len, short)) <= graphs.LABEL_LENGTH + 6
    assert short[3] == "age"
