"""How fast the machine is."""

from agg_core.base.speed import probe_s, probed_s


def test_the_probe_is_short_and_much_the_same_each_time():
    times = sorted(probed_s() for _ in range(3))
    assert 0 < times[0] <= times[2] < 0.2
    assert times[1] < 3 * times[0]


def test_it_is_made_once_in_a_process():
    assert probe_s() == probe_s()
