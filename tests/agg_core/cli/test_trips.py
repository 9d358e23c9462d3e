"""What `agg-core trips` counts."""

from tests.agg_core.cli.told import strict_json


def test_trips_as_a_table(run, tmp_path):
    file = tmp_path / "trips.csv"
    file.write_text(
        "ride_id,started_at,ended_at,start_station_id,end_station_id\n"
        "1,2024-02-01 09:00,2024-02-01 09:10,S1,S2\n2,2024-02-01 09:20,2024-02-01 09:40,S1,S2\n"
    )
    code, out, _ = run("trips", file)
    assert (code, out) == (0, "time,origin,dest,count\n2024-02-01 09:00:00,S1,S2,2\n")
    code, out, _ = run("inspect", file, "--json")
    told = strict_json(out)
    assert (code, told["kind"], told["rows_read"], told["rows_kept"]) == (0, "trips", 2, 2)
