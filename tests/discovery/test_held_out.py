"""What the numbers beside edges and arrows are called, and the tables about networks on which nothing was chosen."""

import csv
import json
import pathlib

import jax
import numpy as np

from experiments.evidence.discovery import causes, held_out, left_out
from jaxdp import discovery
from jaxdp.ask.graph import GraphAnswer
from jaxdp.data.records import as_records

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "discovery.md"
ROWS = json.loads(held_out.FILE.read_text())["rows"]


def chain(n=20_000):
    """Columns a, b, c, d: each copies the one before it in three quarters of the records."""
    generator = np.random.default_rng(0)
    columns = [generator.integers(0, 2, n)]
    for _ in range(3):
        columns.append(np.where(generator.random(n) < 0.25, 1 - columns[-1], columns[-1]))
    return as_records(np.stack(columns, axis=1).astype(np.int32), (2,) * 4)


def test_edges_have_q_values_and_arrows_shares_and_neither_is_called_a_probability(tmp_path):
    graph = discovery.max_min_pc(jax.random.key(0), chain(), epsilon=4.0)
    writer, *what = GraphAnswer(graph, 9, "").written()["edges.csv"]
    writer(tmp_path / "edges.csv", *what)
    rows = list(csv.DictReader((tmp_path / "edges.csv").open()))
    assert {"q_value", "share_a_to_b", "share_b_to_a"} <= set(rows[0])
    assert not {"confidence", "a_to_b", "b_to_a"} & set(rows[0])
    kept = [row for row in rows if row["edge"] == "True"]
    assert kept
    assert all(float(row["q_value"]) <= 0.05 for row in kept)
    assert not hasattr(graph, "confidence")


def test_a_forest_says_how_near_the_truth_such_graphs_were():
    graph = discovery.max_min_pc(jax.random.key(0), chain(2000), epsilon=1.0, prune="forest")
    assert "hardly nearer to the truth than a graph without edges" in graph.note


def test_tables_of_the_page_are_those_of_the_record():
    text = PAGE.read_text()
    for table in (held_out.of_edges, held_out.by_network, held_out.of_arrows, held_out.distances):
        assert table(ROWS) in text


def test_the_record_shows_that_neither_number_is_a_calibrated_probability():
    """Off by more than 0.05 where a calibrated number would not be; the names say so."""
    sure = [right for row in ROWS for q_value, right in row["edges"] if q_value <= 0.01]
    assert np.mean(sure) < 0.95
    arrows = np.array([arrow for row in ROWS for arrow in row["arrows"]], float)
    high = arrows[(arrows[:, 0] >= 0.9) & (arrows[:, 0] < 0.99) & (arrows[:, 2] == 1)]
    assert high[:, 0].mean() - high[:, 1].mean() > 0.05


def test_the_table_of_edges_left_out_is_that_of_its_record():
    assert left_out.table(json.loads(left_out.FILE.read_text())["rows"]) in PAGE.read_text()


def test_the_table_of_causes_is_that_of_its_record():
    assert causes.table(json.loads(causes.FILE.read_text())["rows"]) in PAGE.read_text()


def test_causes_add_up_to_the_distance_and_each_is_called_by_its_name():
    arrow, back, line, none = (np.zeros((2, 2), bool) for _ in range(4))
    arrow[0, 1] = back[1, 0] = True
    line[:] = ~np.eye(2, dtype=bool)
    expected = {
        "extra": (arrow, none),
        "missing": (none, line),
        "reversed": (back, arrow),
        "arrow for open": (arrow, line),
        "open for arrow": (line, back),
    }
    for name, (found, true) in expected.items():
        assert {cause for cause, count in causes.parts(found, true).items() if count} == {name}
        assert not any(causes.parts(true, true).values())
    rows = json.loads(causes.FILE.read_text())["rows"]
    assert all(row["shd"] == sum(row[name] for name in causes.CAUSES) for row in rows)


def test_an_edge_is_left_out_where_its_mark_is_less_probable_than_no_edge():
    fits = {("forest", True): np.array([1.0, 0.0]), ("forest", False): np.array([0.0, 0.0, 0.2])}
    row = {"search": "forest", "empty": 4, "edges": [[0.5, True, True, True], [0.6, True, False, False]]}
    row["edges"].append([0.9, False, True, False])
    kept = left_out.drawn(row, fits)  # 0.65 p above 0.35: p above 0.538
    assert kept.tolist() == [False, True, False]
    assert left_out.judged(row, np.ones(3, bool)) == (4.0, 4.0 / 7.0, 3)
    assert left_out.judged(row, kept) == (5.0, 0.0, 1)
