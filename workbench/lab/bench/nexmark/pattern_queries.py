"""Nexmark's pattern queries in their public texts, from SELECT on.

Source of the texts: github.com/nexmark/nexmark, nexmark-flink/src/main/resources/queries-cep (Apache License 2.0).
"""

from __future__ import annotations

Q0 = """
SELECT
    auction, bidder, start_tstamp, bottom_tstamp, end_tstamp
FROM bid
MATCH_RECOGNIZE (
    PARTITION BY auction, bidder
    ORDER BY `dateTime`
    MEASURES
        START_ROW.`dateTime` AS start_tstamp,
        LAST(PRICE_DOWN.`dateTime`) AS bottom_tstamp,
        LAST(PRICE_UP.`dateTime`) AS end_tstamp
    ONE ROW PER MATCH
    AFTER MATCH SKIP TO LAST PRICE_UP
    PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
    DEFINE
        PRICE_DOWN AS
            (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
                PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
        PRICE_UP AS
            PRICE_UP.price > LAST(PRICE_DOWN.price, 1)
);
"""
Q1 = """
SELECT
    auction, bidder, start_tstamp, end_tstamp, avg_price
FROM bid
MATCH_RECOGNIZE(
    PARTITION BY auction, bidder
    ORDER BY `dateTime`
    MEASURES
        FIRST(A.`dateTime`) AS start_tstamp,
        LAST(A.`dateTime`) AS end_tstamp,
        AVG(A.price) AS avg_price
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A+ B)
    DEFINE
        A AS AVG(A.price) < 10000
);
"""
Q2 = Q1.replace("SKIP PAST LAST ROW", "SKIP TO NEXT ROW")
Q3 = """
SELECT
    auction, bidder, drop_time, drop_diff
FROM bid
MATCH_RECOGNIZE(
    PARTITION BY auction, bidder
    ORDER BY `dateTime`
    MEASURES
        C.`dateTime` AS drop_time,
        A.price - C.price AS drop_diff
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A B* C) WITHIN INTERVAL '5' SECOND
    DEFINE
        B AS B.price > A.price - 50,
        C AS C.price < A.price - 50
);
"""
PATTERNS = {"q0": Q0, "q1": Q1, "q2": Q2, "q3": Q3}
