-- Names are bytes and not texts: a text of PostgreSQL cannot hold every text, and bytes are sorted in the one way that
-- every store sorts them. All keys begin with the tenant and, where there is one, the thread, so that tables can be divided.

-- A thread, how it stands, and its head, packed. The lease is the two columns `owner` and `until`. A head is written again with
-- every append, so its page keeps room for the next.
CREATE TABLE threads (
    tenant  bytea    NOT NULL,
    thread  bytea    NOT NULL,
    version bigint   NOT NULL,
    epoch   bigint   NOT NULL,
    owner   bytea,
    until   bigint,
    head    bytea    NOT NULL,
    PRIMARY KEY (tenant, thread)
) WITH (fillfactor = 50);

-- The records of an append, packed, under the sequence of the last one.
CREATE TABLE events (
    tenant  bytea    NOT NULL,
    thread  bytea    NOT NULL,
    seq     bigint   NOT NULL,
    records bytea    NOT NULL,
    PRIMARY KEY (tenant, thread, seq)
);

-- Both come compressed if that helps, and a second try would not.
ALTER TABLE threads ALTER COLUMN head SET STORAGE EXTERNAL;
ALTER TABLE events ALTER COLUMN records SET STORAGE EXTERNAL;

CREATE TABLE entries (
    tenant bytea    NOT NULL,
    idx    smallint NOT NULL,
    key    bytea    NOT NULL,
    sort   bigint   NOT NULL,
    thread bytea    NOT NULL,
    PRIMARY KEY (tenant, idx, key, sort, thread)
);

CREATE TABLE blobs (
    tenant bytea    NOT NULL,
    digest bytea    NOT NULL,
    codec  smallint NOT NULL,
    key_id text,
    bytes  bytea    NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- A cell without a value was removed; it stays for its version. One with `until` is absent from then on, and swept away.
CREATE TABLE cells (
    tenant  bytea    NOT NULL,
    space   smallint NOT NULL,
    key     bytea    NOT NULL,
    version bigint   NOT NULL,
    value   bytea,
    until   bigint,
    PRIMARY KEY (tenant, space, key)
);

CREATE INDEX cells_until ON cells (until) WHERE until IS NOT NULL;

-- What is true of the database as a whole. `swept`: the highest version of a cell that was swept away. `backup`: this is a
-- copy that nobody has adopted, made at that time.
CREATE TABLE marks (
    name  text   PRIMARY KEY,
    value bigint NOT NULL
);
