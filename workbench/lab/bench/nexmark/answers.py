"""The same rows as Nexmark's queries in DuckDB's words, computed from whole tables."""

from __future__ import annotations

_BOUNDS = "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000"
_COUNTS = ", ".join(["count(*)", *(f"count(*) FILTER ({bound})" for bound in _BOUNDS)])
_DISTINCT = ", ".join(
    call
    for column in ("bidder", "auction")
    for call in (
        f"count(DISTINCT {column})",
        *(f"count(DISTINCT {column}) FILTER ({bound})" for bound in _BOUNDS),
    )
)
_DAY, _MINUTE = "strftime(dateTime, '%Y-%m-%d')", "strftime(dateTime, '%H:%M')"
_HOPS = """SELECT auction, count(*) AS num, epoch_us(dateTime) // 2000000 - i AS start FROM bid, range(5) AS r(i)
    GROUP BY auction, start"""
_CHANNEL = """CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
    WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') END"""
_WON = "auction.id = bid.auction AND bid.dateTime BETWEEN auction.dateTime AND auction.expires"

ANSWERS = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908::DOUBLE * price, dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": """SELECT name, city, state, auction.id FROM auction JOIN person ON seller = person.id
        WHERE category = 10 AND state IN ('OR', 'ID', 'CA')""",
    "q4": f"""SELECT category, avg(final) FROM (SELECT max(price) AS final, category FROM auction JOIN bid ON {_WON}
        GROUP BY auction.id, category) GROUP BY category""",
    "q5": f"""WITH c AS ({_HOPS}) SELECT auction, num FROM c
        JOIN (SELECT start AS s, max(num) AS most FROM c GROUP BY start) ON start = s AND num = most""",
    "q6": f"""SELECT seller, avg(price) OVER
        (PARTITION BY seller ORDER BY placed ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) FROM
        (SELECT seller, price, bid.dateTime AS placed FROM auction JOIN bid ON {_WON}
        QUALIFY row_number() OVER (PARTITION BY id, seller ORDER BY price, bid.dateTime) = 1)""",
    "q7": """SELECT auction, price, bidder, dateTime, extra FROM bid
        JOIN (SELECT epoch_us(dateTime) // 10000000 AS w, max(price) AS most FROM bid GROUP BY w) ON price = most
        WHERE dateTime BETWEEN make_timestamp(w * 10000000) AND make_timestamp((w + 1) * 10000000)""",
    "q8": """SELECT DISTINCT person.id, name, make_timestamp(epoch_us(person.dateTime) // 10000000 * 10000000)
        FROM person JOIN auction ON person.id = seller
        AND epoch_us(person.dateTime) // 10000000 = epoch_us(auction.dateTime) // 10000000""",
    "q9": f"""SELECT id, itemName, description, initialBid, reserve, auction.dateTime, expires, seller, category,
        auction.extra, auction, bidder, price, bid.dateTime, bid.extra FROM auction JOIN bid ON {_WON}
        QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid.dateTime) = 1""",
    "q10": f"SELECT auction, bidder, price, dateTime, extra, {_DAY}, {_MINUTE} FROM bid",
    "q11": """WITH opened AS (
            SELECT bidder, dateTime, COALESCE(dateTime - lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime)
                > INTERVAL 10 SECOND, false)::INT AS opens FROM bid),
        numbered AS (
            SELECT *, sum(opens) OVER (PARTITION BY bidder ORDER BY dateTime RANGE UNBOUNDED PRECEDING) AS n
            FROM opened)
        SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECOND FROM numbered GROUP BY bidder, n""",
    "q12": "SELECT bidder, count(*) FROM bid GROUP BY bidder",
    "q13": "SELECT auction, bidder, price, dateTime, value FROM bid JOIN side_input ON auction % 10000 = key",
    "q14": """SELECT auction, bidder, 0.908::DOUBLE * price,
        CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
        WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END,
        dateTime, extra, length(extra) - length(replace(extra, 'c', ''))
        FROM bid WHERE 0.908::DOUBLE * price > 1000000 AND 0.908::DOUBLE * price < 50000000""",
    "q15": f"SELECT {_DAY}, {_COUNTS}, {_DISTINCT} FROM bid GROUP BY {_DAY}",
    "q16": f"SELECT channel, {_DAY}, max({_MINUTE}), {_COUNTS}, {_DISTINCT} FROM bid GROUP BY channel, {_DAY}",
    "q17": f"""SELECT auction, {_DAY}, {_COUNTS}, min(price), max(price), avg(price), sum(price)::BIGINT
        FROM bid GROUP BY auction, {_DAY}""",
    "q18": """SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY dateTime DESC) = 1""",
    "q19": """SELECT auction, price, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid
        QUALIFY place <= 10""",
    "q20": """SELECT auction, bidder, price, channel, url, bid.dateTime, bid.extra, itemName, description, initialBid,
        reserve, auction.dateTime, expires, seller, category, auction.extra
        FROM bid JOIN auction ON bid.auction = auction.id WHERE category = 10""",
    "q21": f"""SELECT auction, bidder, price, channel, {_CHANNEL} AS channel_id FROM bid
        WHERE channel_id IS NOT NULL""",
    "q22": """SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5),
        split_part(url, '/', 6) FROM bid""",
}
"""By query."""

COMPARED = {
    "q12": "SELECT c0, sum(c1)::BIGINT FROM found GROUP BY c0",  # its windows are those of the clock
    "q19": "SELECT c0, c2, c7 FROM found",  # of rows with equal prices only the places are the same
}
"""What is compared of the columns c0, c1 and so on of a result, where those are not all."""
