"""Figures: they are drawn of what is there, in the colors of the page."""

import re
import unittest
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import becalm
import becalm.plot

SHEET = Path(__file__).resolve().parents[3] / "crates/report/assets/page.css"


class Figures(unittest.TestCase):
    def tearDown(self):
        plt.close("all")

    def test_colors_are_those_of_the_page(self):
        of_page = dict(re.findall(r"^  --([a-z0-9_-]+): light-dark\((#\w+, #\w+)\);", SHEET.read_text(), flags=re.MULTILINE))
        for name, tones in becalm.plot.COLORS.items():
            self.assertEqual(", ".join(tones), of_page[name], name)
        kinds = {name for name in of_page if name.startswith(("kind-", "series-"))}
        self.assertEqual(kinds, {name for name in becalm.plot.COLORS if name.startswith(("kind-", "series-"))})

    def test_detours_have_the_color_of_what_took_most(self):
        axes = becalm.plot.detours(becalm.open("busy"), cpu=1)
        shown = {points.get_label(): points for points in axes.collections}
        self.assertEqual(len(shown["task"].get_offsets()), 50)
        np.testing.assert_array_equal(shown["task"].get_offsets()[:, 1] > 600_000, True)
        self.assertEqual(sum(len(points.get_offsets()) for points in shown.values()), 2_500)

    def test_of_several_cpus_one_is_to_be_named(self):
        with self.assertRaisesRegex(ValueError, "name one"):
            becalm.plot.detours(becalm.open("busy"))

    def test_points_on_one_spot_are_drawn_once(self):
        x, y = np.linspace(0, 1, 500_000), np.full(500_000, 100)
        kept, _ = becalm.plot._apart(x, y)
        self.assertLessEqual(len(kept), becalm.plot.PLACES)
        self.assertGreater(len(kept), becalm.plot.PLACES - 5)

    def test_histograms_hold_every_detour(self):
        run = becalm.open("busy")
        axes = becalm.plot.histogram(run)
        counts = sum(int(np.nansum(stairs.get_data().values)) for stairs in axes.patches)
        self.assertEqual(counts, int((run.detours()["duration_ns"] > 0).sum()))

    def test_of_many_cpus_a_histogram_has_one_curve(self):
        axes = becalm.plot.histogram(becalm.open("many"))
        self.assertEqual([text.get_text() for text in axes.get_legend().get_texts()], ["1,024 CPUs together"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            axes.figure.canvas.draw()
        # All of its detours are as long as each other: the axis has no power of ten, and says lengths all the same.
        written = [label.get_text() for label in axes.get_xticklabels(minor=True) if label.get_text()]
        self.assertIn("2us", written)
        self.assertTrue(all(text.endswith("us") for text in written), written)

    def test_a_bar_of_one_detour_is_seen(self):
        axes = becalm.plot.histogram(becalm.open("cluster"))
        self.assertLess(axes.get_ylim()[0], 1)
        axes.figure.canvas.draw()
        self.assertIn("1,000", [label.get_text() for label in axes.get_yticklabels()])

    def test_a_single_source_is_no_wall(self):
        axes = becalm.plot.sources(becalm.open("many"))
        axes.figure.canvas.draw()
        self.assertLess(axes.patches[0].get_window_extent().height / axes.figure.dpi, 0.5, "inches")

    def test_predictions_in_one_figure_are_told_apart(self):
        answers = [becalm.predict("busy", ranks=[64, 1024], phases=100, without=without) for without in ((), "gremlin")]
        axes = becalm.plot.slowdown(answers[0], label="as recorded")
        becalm.plot.slowdown(answers[1], ax=axes, label="without gremlin")
        first, second = axes.lines
        self.assertNotEqual(first.get_color(), second.get_color())
        self.assertEqual([text.get_text() for text in axes.get_legend().get_texts()], ["as recorded", "without gremlin"])

    def test_sources_are_bars(self):
        axes = becalm.plot.sources(becalm.open("busy"), dark=True)
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()][-1], "gremlin")
        self.assertAlmostEqual(axes.patches[-1].get_width(), 69.05, places=1)

    def test_slowdowns_are_curves(self):
        predicted = becalm.predict("poisson:rate=10Hz,detour=50us", ranks=[64, 1024], grain_ns=[10**6, 10**7], phases=100)
        axes = becalm.plot.slowdown(predicted)
        self.assertEqual(len(axes.lines), 2)
        np.testing.assert_array_equal(axes.lines[0].get_ydata(), predicted.column("slowdown_ratio")[:2])
        law = becalm.law(10**6, 50_000, 10)
        self.assertEqual(len(becalm.plot.slowdown(law).lines), 1)


if __name__ == "__main__":
    unittest.main()
