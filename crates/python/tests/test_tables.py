"""Tables of a run: what Arrow and NumPy read of them is what the files hold, and lies where it lay."""

import gc
import glob
import unittest

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet

import becalm


def stored(run, table, columns):
    """The columns of a table as PyArrow reads them from the files of a run of one node."""
    files = sorted(glob.glob(f"{run}.becalm/{table}/*/*.parquet"))
    return pyarrow.concat_tables(pyarrow.parquet.ParquetFile(file).read(columns=columns) for file in files)


class Tables(unittest.TestCase):
    def test_detours_are_those_of_the_files(self):
        columns = ["cpu", "start_ns", "duration_ns", "incomplete"]
        found, known = pyarrow.table(becalm.open("busy").detours()), stored("busy", "detours", columns)
        self.assertEqual(known.num_rows, 5_000)
        for name in columns:
            self.assertEqual(found[name].to_pylist(), known[name].to_pylist(), name)
        self.assertEqual(sum(found["incomplete"].to_pylist()), 1)
        self.assertEqual({*found["node"].to_pylist()}, {"node1"})

    def test_activities_are_those_of_the_files(self):
        columns = ["cpu", "detour", "start_ns", "self_ns", "kind", "source", "detail"]
        found, known = pyarrow.table(becalm.open("busy").activities()), stored("busy", "activities", columns)
        for name in columns:
            self.assertEqual(found[name].to_pylist(), known[name].to_pylist(), name)

    def test_samples_are_those_of_the_files(self):
        columns = ["cpu", "start_ns", "duration_ns", "work"]
        found, known = pyarrow.table(becalm.open("calm").samples()), stored("calm", "samples", columns)
        self.assertGreater(known.num_rows, 0)
        for name in columns:
            self.assertEqual(found[name].to_pylist(), known[name].to_pylist(), name)

    def test_stays_are_those_of_the_files(self):
        columns = ["thread", "cpu", "start_ns", "duration_ns", "state", "why", "context", "waker"]
        found, known = pyarrow.table(becalm.open("observed").stays()), stored("observed", "stays", columns)
        self.assertGreater(known.num_rows, 100)
        for name in columns:
            self.assertEqual(found[name].to_pylist(), known[name].to_pylist(), name)

    def test_threads_and_takers_are_those_of_the_document(self):
        run = becalm.open("observed")
        for table, rows in ((run.threads(), run.documents[0]["threads"]), (run.takers(), run.documents[0]["takers"])):
            self.assertEqual(len(table), len(rows))
            for name in {*table.names} - {"node", "thread"}:
                self.assertEqual(table[name].tolist(), [row.get(name, -1) for row in rows], name)
            self.assertEqual({*table["node"]}, {"node1"})

    def test_the_stays_of_a_thread_add_up_to_its_life(self):
        threads, stays = becalm.open("observed").threads(), becalm.open("observed").stays()
        joined = duckdb.sql(
            "SELECT any_value(wall_ns) AS wall_ns, sum(duration_ns) AS duration_ns, any_value(queued_ns) AS queued_ns,"
            " sum(duration_ns) FILTER (state = 'queued') AS queued FROM threads JOIN stays USING (node, thread) GROUP BY node, thread"
        ).fetchnumpy()
        self.assertEqual(len(joined["wall_ns"]), len(threads))
        np.testing.assert_array_equal(joined["wall_ns"], joined["duration_ns"])
        np.testing.assert_array_equal(joined["queued_ns"], joined["queued"])

    def test_tables_that_a_run_lacks_are_refused(self):
        with self.assertRaisesRegex(becalm.UsageError, "has the tables threads, stays and takers"):
            becalm.open("observed").detours()
        with self.assertRaisesRegex(becalm.UsageError, "holds no observed threads"):
            becalm.open("busy").stays()
        with self.assertRaisesRegex(becalm.BecalmError, "no node 'node9'"):
            becalm.open("observed").takers(node="node9")

    def test_the_number_of_a_detour_joins_its_activities(self):
        run = becalm.open("cluster")
        detours, activities = run.detours(), run.activities()
        self.assertGreater(len(run.nodes), 2)
        joined = duckdb.sql(
            "SELECT any_value(duration_ns) AS duration_ns, sum(self_ns) AS self_ns FROM detours JOIN activities USING (node, cpu, detour)"
            " GROUP BY node, cpu, detour"
        ).fetchnumpy()
        self.assertEqual(len(joined["duration_ns"]), len(detours))
        np.testing.assert_array_equal(joined["duration_ns"], joined["self_ns"])

    def test_no_column_is_copied(self):
        table = becalm.open("busy").detours()
        for name in ("start_ns", "duration_ns", "cpu"):
            address = table[name].__array_interface__["data"][0]
            self.assertEqual(table[name].__array_interface__["data"][0], address)
            arrow = pyarrow.table(table)[name]
            self.assertEqual((arrow.num_chunks, arrow.chunk(0).buffers()[1].address), (1, address), name)
            self.assertEqual(pyarrow.array(table.arrow(name)).buffers()[1].address, address, name)
            self.assertEqual(polars.DataFrame(table)[name].to_numpy().__array_interface__["data"][0], address, name)
            self.assertEqual(np.asarray(pyarrow.array(table.arrow(name))).__array_interface__["data"][0], address, name)
        keys, names = becalm.open("busy").activities().keys("source")
        self.assertEqual(keys.dtype, np.int32)
        self.assertIn("gremlin", names)

    def test_a_column_outlives_its_table(self):
        run = becalm.open("busy")
        expected = run.detours()["start_ns"].tolist()
        table = run.detours()
        view, arrow, frame = table["start_ns"], pyarrow.table(table), polars.DataFrame(table)
        table._native.__arrow_c_stream__()
        del table, run
        gc.collect()
        others = [np.full(5_000, 7, dtype=np.int64) for _ in range(50)]
        self.assertEqual(view.tolist(), expected)
        self.assertEqual(arrow["start_ns"].to_pylist(), expected)
        self.assertEqual(frame["start_ns"].to_list(), expected)
        del others
        self.assertFalse(view.flags.writeable)
        with self.assertRaises(ValueError):
            view[0] = 1

    def test_every_reader_takes_a_table(self):
        detours = becalm.open("busy").detours()
        total = int(detours["duration_ns"].sum())
        self.assertEqual(polars.DataFrame(detours)["duration_ns"].sum(), total)
        self.assertEqual(pandas.DataFrame.from_arrow(detours)["duration_ns"].sum(), total)
        self.assertEqual(duckdb.sql("SELECT sum(duration_ns) FROM detours").fetchall(), [(total,)])
        self.assertEqual(pyarrow.record_batch(detours).num_rows, 5_000)
        self.assertEqual(pyarrow.schema(detours).names, detours.names)

    def test_some_cpus_and_some_nodes(self):
        busy, cluster = becalm.open("busy"), becalm.open("cluster")
        self.assertEqual({*busy.detours(cpus=1)["cpu"].tolist()}, {1})
        self.assertEqual(len(busy.detours(cpus="0-1")), 5_000)
        one = cluster.nodes[1]
        self.assertEqual({*cluster.detours(node=one)["node"].tolist()}, {one})
        both = busy.activities(cpus=[0])
        self.assertEqual({*both["cpu"].tolist()}, {0})
        for options in ({"cpus": 7}, {"node": "nobody"}):
            with self.assertRaises(becalm.BecalmError, msg=str(options)):
                busy.detours(**options)
        for cpus in ("", "a", "3-1", "1-", [], -1, 1.5, 1 << 20):
            with self.assertRaises(becalm.UsageError, msg=str(cpus)):
                busy.detours(cpus=cpus)

    def test_what_is_no_recording_is_refused(self):
        with self.assertRaisesRegex(becalm.BecalmError, "cannot open nowhere"):
            becalm.open("nowhere")
        with self.assertRaisesRegex(becalm.BecalmError, "holds .* and not .*; see it with becalm report"):
            becalm.open(glob.glob("costs/*.becalm")[0])
        with self.assertRaisesRegex(KeyError, "there is no column 'length'; there are node, cpu"):
            becalm.open("busy").detours()["length"]


if __name__ == "__main__":
    unittest.main()
