-- SPDX-License-Identifier: MIT OR Apache-2.0
-- 300,000 rows in memory, an index, and groups by it.
CREATE TABLE sales (id INTEGER PRIMARY KEY, customer INTEGER, amount INTEGER, note TEXT);
WITH RECURSIVE draws (id, state) AS (
    SELECT 1, 1
    UNION ALL
    SELECT id + 1, (state * 1103515245 + 12345) % 2147483648 FROM draws WHERE id < 300000
)
INSERT INTO sales SELECT id, state / 64 % 50000, state / 4096 % 1000, 'sale ' || state FROM draws;
CREATE INDEX by_customer ON sales (customer);
SELECT count(*), sum(total), max(notes) FROM (
    SELECT customer, sum(amount) AS total, max(note) AS notes FROM sales GROUP BY customer
);
SELECT sum(a.amount - b.amount) FROM sales AS a JOIN sales AS b ON b.id = a.customer + 1;
