-- Appends of several threads, each admitted or not, in one statement, which is one transaction.
--
-- $1 the time, unless it is the database's own; $2 who appends. $3 to $10: the appends, in the order of their threads; $11 and
-- $12: their heads and their records. $13 to $17: index rows; $18 to $21: the cells that must be as they were, and $22 and
-- $23: who depends on which of them. Whoever is not returned was not admitted, and nothing of it was written.
--
-- It is planned once, when tables may be empty, and used when they are large. So nothing is left to choose about tables: a
-- row is looked up by its key, for each that is asked for (`LATERAL` with a lock or `OFFSET 0`, which are not flattened into
-- a join), and then changed where it was found. And what is long is taken out of its array only where it is written.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now,
           NOT EXISTS (SELECT FROM marks WHERE name = 'backup') AS may_drive
),
-- Whoever changes a cell waits until this is committed, and others who only depend on it do not.
kept AS MATERIALIZED (
    SELECT w.i FROM clock, unnest($18::bytea[], $19::smallint[], $20::bytea[], $21::bigint[])
        WITH ORDINALITY AS w (tenant, space, key, version, i), LATERAL (
        SELECT FROM cells c
        WHERE c.tenant = w.tenant AND c.space = w.space AND c.key = w.key
          AND c.version = w.version AND c.value IS NOT NULL AND (c.until IS NULL OR c.until > now)
        FOR SHARE
    ) c
),
asked AS MATERIALIZED (
    SELECT * FROM unnest($3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::smallint[], $8::bigint[], $9::bigint[],
                         $10::boolean[])
        WITH ORDINALITY AS a (tenant, thread, expect, version, fence, epoch, lasts, release, n)
    WHERE n NOT IN (SELECT w.n FROM unnest($22::bigint[], $23::bigint[]) AS w (n, i) WHERE w.i NOT IN (SELECT i FROM kept))
),
-- One thread after the other, and in one order by everybody, so that nobody waits for somebody who waits for them. Of one that
-- another has changed since it was looked for, the database asks all of this again of what it is then.
changed AS (
    UPDATE threads t
    SET version = a.version,
        epoch   = CASE a.fence WHEN 2 THEN a.epoch + 1 ELSE t.epoch END,
        owner   = CASE WHEN a.release THEN NULL WHEN a.fence = 2 THEN $2 ELSE t.owner END,
        until   = CASE WHEN a.release THEN NULL WHEN a.fence = 2 THEN now + a.lasts ELSE t.until END,
        head    = ($11::bytea[])[a.n]
    FROM clock, asked a, LATERAL (
        SELECT f.ctid AS place FROM threads f WHERE f.tenant = a.tenant AND f.thread = a.thread OFFSET 0
    ) f
    WHERE t.ctid = f.place AND t.version = a.expect
      AND CASE a.fence
              WHEN 0 THEN true
              WHEN 1 THEN t.epoch = a.epoch AND t.owner = $2
              ELSE t.epoch = a.epoch AND may_drive AND (t.until IS NULL OR t.until <= now)
          END
    RETURNING a.n, a.tenant, a.thread, a.version, t.epoch
),
created AS (
    INSERT INTO threads (tenant, thread, version, epoch, owner, until, head)
    SELECT a.tenant, a.thread, a.version, CASE a.fence WHEN 2 THEN 1 ELSE 0 END,
           CASE WHEN a.fence = 2 AND NOT a.release THEN $2 END, CASE WHEN a.fence = 2 AND NOT a.release THEN now + a.lasts END,
           ($11::bytea[])[a.n]
    FROM clock, asked a
    WHERE a.expect = 0 AND (a.fence = 0 OR a.fence = 2 AND a.epoch = 0 AND may_drive)
    ON CONFLICT DO NOTHING
    RETURNING tenant, thread, epoch
),
admitted AS MATERIALIZED (
    SELECT n, tenant, thread, version, epoch FROM changed
    UNION ALL
    SELECT a.n, a.tenant, a.thread, a.version, c.epoch FROM created c JOIN asked a USING (tenant, thread)
),
recorded AS (
    INSERT INTO events (tenant, thread, seq, records)
    SELECT tenant, thread, version, ($12::bytea[])[n] FROM admitted
),
rows AS MATERIALIZED (
    SELECT a.tenant, a.thread, i.put, i.idx, i.key, i.sort
    FROM unnest($13::bigint[], $14::boolean[], $15::smallint[], $16::bytea[], $17::bigint[]) AS i (n, put, idx, key, sort)
    JOIN admitted a USING (n)
),
found AS MATERIALIZED (
    SELECT e.place FROM rows r, LATERAL (
        SELECT e.ctid AS place FROM entries e
        WHERE e.tenant = r.tenant AND e.idx = r.idx AND e.key = r.key AND e.sort = r.sort AND e.thread = r.thread
        OFFSET 0
    ) e
    WHERE NOT r.put
),
removed AS (
    DELETE FROM entries e USING found f WHERE e.ctid = f.place
),
-- One that is there already fails all of it, which is then done one by one: nobody but whoever has the thread makes its rows,
-- and looking twice costs more than the row.
entered AS (
    INSERT INTO entries (tenant, idx, key, sort, thread)
    SELECT tenant, idx, key, sort, thread FROM rows WHERE put
)
SELECT n, epoch FROM admitted
