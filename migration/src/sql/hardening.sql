-- Counters of a seed that were looked at are behind it, whatever came of what was rolled with them. A transaction of its own, in one
-- round trip. A seed that was revealed rolls no more, and one that a rollback took with it never was.
CREATE FUNCTION spend_dice(its_tenant uuid, who text, seed uuid, last bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    UPDATE dice_seed SET counter = last WHERE tenant_id = its_tenant AND id = seed AND counter < last AND revealed_at IS NULL;
    RETURN FOUND;
END $$
-- ;;
REVOKE ALL ON FUNCTION spend_dice FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION spend_dice TO tavernkeep_app
