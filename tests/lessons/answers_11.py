"""Right and wrong answers to the exercises of lesson 11."""


def query(
    columns="auction, COUNT(*) AS bids, MAX(price) AS highest",
    source="TUMBLE(bid, ts, INTERVAL '10' MINUTE)",
    group="auction, window_start, window_end",
    having="HAVING COUNT(*) >= 2",
):
    return f"SELECT {columns} FROM {source} GROUP BY {group} {having}"


WINDOWED = query()
RIGHT = {
    "highest": {
        "having": query(),
        "with more columns": query("auction, COUNT(price) AS bids, MAX(price) AS highest, window_start"),
        "a query of a query": f"SELECT auction, bids, highest FROM ({query(having='')}) AS t WHERE bids > 1",
        "a common table": (
            f"WITH found AS ({query(having='')}) SELECT auction, bids, highest FROM found WHERE NOT bids < 2"
        ),
        "a table function": query(source="TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"),
        "seconds": query(source="TUMBLE(bid, ts, INTERVAL '600' SECOND)"),
        "a hop of its size": query(source="HOP(bid, ts, INTERVAL '10' MINUTE, INTERVAL '10' MINUTE)"),
        "in the group": query(source="bid", group="auction, TUMBLE(ts, INTERVAL '10' MINUTE)"),
        "another name, small letters": query(having="HAVING bids >= 2").lower() + ";",
    }
}
WRONG = {
    "highest": {
        "all groups": (query(having=""), "`HAVING` filters groups"),
        "three": (query(having="HAVING COUNT(*) > 2"), "Two bids are enough"),
        "5 min": (query(source="TUMBLE(bid, ts, INTERVAL '5' MINUTE)"), "windows have 5 minutes"),
        "20 min": (query(source="TUMBLE(bid, ts, INTERVAL '20' MINUTE)"), "windows have 20 minutes"),
        "an hour": (query(source="TUMBLE(bid, ts, INTERVAL '1' HOUR)"), "windows have 60 minutes"),
        "a second less": (query(source="TUMBLE(bid, ts, INTERVAL '599' SECOND)"), "windows have 599 s"),
        "different rows": (f"SELECT DISTINCT * FROM ({WINDOWED}) AS t", "missing"),
        "different prices": (query(having="HAVING COUNT(DISTINCT price) >= 2"), "missing"),
        "different bids": (query("auction, COUNT(DISTINCT price) AS bids, MAX(price) AS highest"), "missing"),
        "prices above 0": (query().replace("GROUP BY", "WHERE price > 0 GROUP BY"), "missing"),
        "auctions from 1": (query().replace("GROUP BY", "WHERE auction > 0 GROUP BY"), "missing"),
        "at most three": (query(having="HAVING COUNT(*) BETWEEN 2 AND 3"), "missing"),
        "prices below 100": (
            query("auction, COUNT(*) AS bids, MAX(CASE WHEN price < 100 THEN price END) AS highest"),
            "the result is highest = 11; correct is highest = 4000",
        ),
        "hopping": (query(source="HOP(bid, ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"), "These windows overlap"),
        "the lowest": (query("auction, COUNT(*) AS bids, MIN(price) AS highest"), "the lowest bid"),
        "the sum": (query("auction, COUNT(*) AS bids, SUM(price) AS highest"), "the sum of the bids"),
        "no auction": (query("COUNT(*) AS bids, MAX(price) AS highest", group="window_start, window_end"), "'auction'"),
        "another name": (query("auction, COUNT(*) AS n, MAX(price) AS highest"), "no column 'bids'"),
        "where": (query(having="").replace(" GROUP", " WHERE COUNT(*) >= 2 GROUP"), "use it in SELECT or HAVING"),
        "another table": (query(source="TUMBLE(bids, ts, INTERVAL '10' MINUTE)"), "did you mean 'bid'"),
        "no query": ("highest", "begin with SELECT"),
        "a stream": (lambda bid: bid, "write the query as text"),
    }
}
