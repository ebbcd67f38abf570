-- Appends of several threads, each admitted or not, in one statement, which is one transaction.
--
-- $1 the time, unless it is the database's own; $2 who appends. $3 to $13: the appends; $14 to $21: their records; $22 to $26:
-- their index rows; $27 to $30: the cells that must be as they were. Whoever is not returned was not admitted, and nothing
-- of it was written.
--
-- It is planned once, when tables may be empty, and used when they are large. So nothing is left to choose about tables: a
-- row is looked up by its key, for each that is asked for (`LATERAL` with a lock or `OFFSET 0`, which are not flattened into
-- a join), and then changed where it was found.
WITH clock AS MATERIALIZED (
    SELECT coalesce($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) AS now,
           NOT EXISTS (SELECT FROM marks WHERE name = 'backup') AS may_drive
),
asked AS MATERIALIZED (
    SELECT * FROM unnest($3::bytea[], $4::bytea[], $5::bigint[], $6::bigint[], $7::smallint[], $8::bigint[], $9::bigint[],
                         $10::boolean[], $11::smallint[], $12::text[], $13::bytea[])
        WITH ORDINALITY AS a (tenant, thread, expect, version, fence, epoch, lasts, release, codec, key_id, head, n)
),
wanted AS MATERIALIZED (
    SELECT w.*, a.tenant
    FROM unnest($27::bigint[], $28::smallint[], $29::bytea[], $30::bigint[]) WITH ORDINALITY AS w (n, space, key, version, i)
    JOIN asked a USING (n)
),
-- Whoever changes a cell waits until this is committed, and others who only depend on it do not.
kept AS MATERIALIZED (
    SELECT w.i FROM (SELECT * FROM wanted ORDER BY tenant, space, key) w, clock, LATERAL (
        SELECT FROM cells c
        WHERE c.tenant = w.tenant AND c.space = w.space AND c.key = w.key
          AND c.version = w.version AND c.value IS NOT NULL AND (c.until IS NULL OR c.until > now)
        FOR SHARE
    ) c
),
fit AS MATERIALIZED (
    SELECT * FROM asked WHERE n NOT IN (SELECT n FROM wanted WHERE i NOT IN (SELECT i FROM kept))
),
-- In one order by everybody, so that nobody waits for somebody who waits for them.
locked AS MATERIALIZED (
    SELECT a.n, t.place FROM (SELECT * FROM fit ORDER BY tenant, thread) a, clock, LATERAL (
        SELECT t.ctid AS place FROM threads t
        WHERE t.tenant = a.tenant AND t.thread = a.thread AND t.version = a.expect
          AND CASE a.fence
                  WHEN 0 THEN true
                  WHEN 1 THEN t.epoch = a.epoch AND t.owner = $2
                  ELSE t.epoch = a.epoch AND may_drive AND (t.until IS NULL OR t.until <= now)
              END
        FOR UPDATE
    ) t
),
changed AS (
    UPDATE threads t
    SET version = a.version,
        epoch   = CASE a.fence WHEN 2 THEN a.epoch + 1 ELSE t.epoch END,
        owner   = CASE WHEN a.release THEN NULL WHEN a.fence = 2 THEN $2 ELSE t.owner END,
        until   = CASE WHEN a.release THEN NULL WHEN a.fence = 2 THEN now + a.lasts ELSE t.until END,
        codec   = a.codec,
        key_id  = a.key_id,
        head    = a.head
    FROM locked l JOIN fit a USING (n), clock
    WHERE t.ctid = l.place
    RETURNING a.n, t.epoch
),
created AS (
    INSERT INTO threads (tenant, thread, version, epoch, owner, until, codec, key_id, head)
    SELECT a.tenant, a.thread, a.version, CASE a.fence WHEN 2 THEN 1 ELSE 0 END,
           CASE WHEN a.fence = 2 AND NOT a.release THEN $2 END, CASE WHEN a.fence = 2 AND NOT a.release THEN now + a.lasts END,
           a.codec, a.key_id, a.head
    FROM fit a, clock
    WHERE a.expect = 0 AND (a.fence = 0 OR a.fence = 2 AND a.epoch = 0 AND may_drive)
    ORDER BY a.tenant, a.thread
    ON CONFLICT DO NOTHING
    RETURNING tenant, thread, epoch
),
admitted AS MATERIALIZED (
    SELECT a.n, a.tenant, a.thread, c.epoch FROM changed c JOIN asked a USING (n)
    UNION ALL
    SELECT a.n, a.tenant, a.thread, c.epoch FROM created c JOIN asked a USING (tenant, thread)
),
recorded AS (
    INSERT INTO events (tenant, thread, seq, header, salt, codec, key_id, payload, hash)
    SELECT a.tenant, a.thread, r.seq, r.header, r.salt, r.codec, r.key_id, r.payload, r.hash
    FROM unnest($14::bigint[], $15::bigint[], $16::bytea[], $17::bytea[], $18::smallint[], $19::text[], $20::bytea[],
                $21::bytea[]) AS r (n, seq, header, salt, codec, key_id, payload, hash)
    JOIN admitted a USING (n)
),
rows AS MATERIALIZED (
    SELECT a.tenant, a.thread, i.put, i.idx, i.key, i.sort
    FROM unnest($22::bigint[], $23::boolean[], $24::smallint[], $25::bytea[], $26::bigint[]) AS i (n, put, idx, key, sort)
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
entered AS (
    INSERT INTO entries (tenant, idx, key, sort, thread)
    SELECT tenant, idx, key, sort, thread FROM rows WHERE put
    ON CONFLICT DO NOTHING
)
SELECT n, epoch FROM admitted
