"""Right and wrong answers to the exercises of lesson 11."""


def query(
    columns="auction, COUNT(*) AS bids, MAX(price) AS highest",
    source="TUMBLE(bid, ts, INTERVAL '10' MINUTE)",
    group="auction, window_start, window_end",
    having="HAVING COUNT(*) >= 2",
):
    return f"SELECT {columns} FROM {source} GROUP BY {group} {having}"


RIGHT = {
    "highest": {
        "having": query(),
        "with more columns": query("auction, COUNT(price) AS bids, MAX(price) AS highest, window_start"),
        "a query of a query": f"SELECT auction, bids, highest FROM ({query(having='')}) AS t WHERE bids > 1",
    }
}
WRONG = {
    "highest": {
        "all groups": (query(having=""), "`HAVING` filters groups"),
        "three": (query(having="HAVING COUNT(*) > 2"), "Two bids are enough"),
        "5 min": (query(source="TUMBLE(bid, ts, INTERVAL '5' MINUTE)"), "windows have five minutes"),
        "20 min": (query(source="TUMBLE(bid, ts, INTERVAL '20' MINUTE)"), "windows have twenty minutes"),
        "an hour": (query(source="TUMBLE(bid, ts, INTERVAL '1' HOUR)"), "windows have an hour"),
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
