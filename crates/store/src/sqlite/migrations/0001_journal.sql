-- A thread, how it stands, and its head. The lease is the three columns `owner`, `boot`, `until`.
CREATE TABLE threads (
    id      INTEGER PRIMARY KEY,
    tenant  TEXT    NOT NULL,
    thread  BLOB    NOT NULL,
    version INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    owner   BLOB,
    boot    TEXT,
    until   INTEGER,
    codec   INTEGER NOT NULL,
    key_id  TEXT,
    head    BLOB    NOT NULL,
    UNIQUE (tenant, thread)
);

-- A record. `pos` is threads.id * 2^24 + sequence, so a thread's records lie side by side and need no second index.
-- `salt` and `payload` may be erased.
CREATE TABLE events (
    pos     INTEGER PRIMARY KEY,
    header  BLOB    NOT NULL,
    salt    BLOB,
    codec   INTEGER NOT NULL,
    key_id  TEXT,
    payload BLOB,
    hash    BLOB    NOT NULL
);

CREATE TABLE entries (
    idx    INTEGER NOT NULL,
    tenant TEXT    NOT NULL,
    key    TEXT    NOT NULL,
    sort   INTEGER NOT NULL,
    thread BLOB    NOT NULL,
    PRIMARY KEY (idx, tenant, key, sort, thread)
) WITHOUT ROWID;

CREATE TABLE blobs (
    tenant TEXT    NOT NULL,
    digest BLOB    NOT NULL,
    codec  INTEGER NOT NULL,
    key_id TEXT,
    bytes  BLOB    NOT NULL,
    PRIMARY KEY (tenant, digest)
);

-- A cell without a value was removed; it stays for its version. One with `until` is absent from then on, and swept away.
CREATE TABLE cells (
    tenant  TEXT    NOT NULL,
    space   INTEGER NOT NULL,
    key     TEXT    NOT NULL,
    version INTEGER NOT NULL,
    value   BLOB,
    until   INTEGER,
    PRIMARY KEY (tenant, space, key)
) WITHOUT ROWID;

CREATE INDEX cells_until ON cells (until) WHERE until IS NOT NULL;

-- What is true of the file as a whole. `swept`: the highest version of a cell that was swept away. `backup`: this is a
-- copy that nobody has adopted, made at that time.
CREATE TABLE marks (
    name  TEXT    PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
