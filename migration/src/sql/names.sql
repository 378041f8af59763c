-- The order of names, as people sort them: letters of any case and with any accent stand together, and 2 comes before 10. It compares
-- texts that differ as different. A PostgreSQL that was built without ICU has only the order of bytes.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i') THEN
        CREATE COLLATION natural_order (PROVIDER = icu, LOCALE = 'und-u-kn-true');
    ELSE
        CREATE COLLATION natural_order FROM "C";
    END IF;
END
$$;
