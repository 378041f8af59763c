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
-- Whether the character that a token plays is still there, and the visit to the table that it is has not ended.
CREATE FUNCTION token_stands(its_tenant uuid, who text, player uuid, visit uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    RETURN (player IS NULL OR EXISTS (SELECT FROM character c WHERE c.tenant_id = its_tenant AND c.id = player))
        AND (visit IS NULL OR NOT EXISTS (SELECT FROM ended_visit e WHERE e.tenant_id = its_tenant AND e.id = visit));
END $$
-- ;;
-- A visit that its player ended before its time. Those of this tenant that would be over by now are forgotten.
CREATE FUNCTION end_visit(its_tenant uuid, who text, visit uuid, over_at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    DELETE FROM ended_visit e WHERE e.tenant_id = its_tenant AND e.until < now() - interval '1 minute';
    INSERT INTO ended_visit (tenant_id, id, until) VALUES (its_tenant, visit, over_at) ON CONFLICT DO NOTHING;
    RETURN true;
END $$
-- ;;
REVOKE ALL ON FUNCTION spend_dice, token_stands, end_visit FROM PUBLIC
-- ;;
GRANT EXECUTE ON FUNCTION spend_dice, token_stands, end_visit TO tavernkeep_app
-- ;;
-- The last word may be the beginning of one, if the words end with one: what is left out or stands in brackets cannot be.
CREATE OR REPLACE FUNCTION search_lore(campaign uuid, words text, rows_max int) RETURNS SETOF uuid LANGUAGE sql STABLE
SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT id FROM lore
    WHERE tenant_id = nullif(current_setting('app.tenant_id', true), '')::uuid AND campaign_id = campaign
      AND search @@ CASE WHEN words ~ '\w$' AND websearch_to_tsquery('simple', words)::text LIKE '%'''
                         THEN (websearch_to_tsquery('simple', words)::text || ':*')::tsquery
                         ELSE websearch_to_tsquery('simple', words) END
    LIMIT rows_max
$$
