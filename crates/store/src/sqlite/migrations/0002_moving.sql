-- What a mark says in words. `leaving`, `left`, `arriving`: the part that this file has in a move; the value is the move's
-- ticket, and the words name the other store. A file with such a mark is sealed: its tables have triggers that refuse
-- whatever is written to them, but for what comes from the other store.
ALTER TABLE marks ADD COLUMN note TEXT;
