-- What a mark says in words. `leaving`, `left`, `arriving`: the part that this database has in a move; the value is the
-- move's ticket, and the words name the other store.
ALTER TABLE marks ADD COLUMN note text;

-- Refuses to let anything be written. While a store has a part in a move, every table has it as a trigger, with the reason as
-- its argument. Only what bears the mark `importing` is let in, which nobody sees but the transaction that makes it.
CREATE FUNCTION holdpoint_sealed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM marks WHERE name = 'importing') THEN
        RAISE EXCEPTION USING ERRCODE = 'HP001', MESSAGE = TG_ARGV[0];
    END IF;
    RETURN NULL;
END
$$;
