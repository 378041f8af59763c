-- The seeds of fair dice, and their counters.

CREATE TABLE dice_seed (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid,
    server_seed bytea NOT NULL,
    client_seed text NOT NULL,
    counter bigint NOT NULL DEFAULT 0,
    revealed_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT dice_seed_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('dice_seed', 'system');
CREATE INDEX dice_seed_list ON dice_seed (tenant_id, campaign_id, id);
CREATE UNIQUE INDEX dice_seed_in_use ON dice_seed (tenant_id, campaign_id) NULLS NOT DISTINCT WHERE revealed_at IS NULL;

-- Counts the stream of a campaign (of the tenant without one) up by `rolls`; a stream that was never used begins with the seed
-- that is given. With `who` it is a transaction of its own, in one round trip; its commit does not wait for the disk, since that
-- of what is rolled does.
CREATE FUNCTION take_dice(its_tenant uuid, who text, seed_id uuid, its_campaign uuid, fresh_server bytea, fresh_client text, rolls bigint)
RETURNS TABLE (id uuid, server_seed bytea, client_seed text, counter bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    settings text := CASE WHEN who IS NOT NULL THEN
        set_config('app.tenant_id', its_tenant::text, true) || set_config('synchronous_commit', 'off', true) END;
BEGIN
    INSERT INTO dice_seed AS s (tenant_id, id, campaign_id, server_seed, client_seed, counter)
    VALUES (its_tenant, seed_id, its_campaign, fresh_server, fresh_client, rolls)
    ON CONFLICT (tenant_id, campaign_id) WHERE revealed_at IS NULL DO UPDATE SET counter = s.counter + rolls
    RETURNING s.id, s.server_seed, s.client_seed, s.counter INTO take_dice.id, take_dice.server_seed, take_dice.client_seed, take_dice.counter;
    RETURN NEXT;
END $$;

-- Stores that counters were used, in the transaction that writes the rolls. Raises a conflict, which is retried, if another roll has used
-- these counters or the seed was revealed. Without a seed nothing was used.
CREATE FUNCTION claim_dice(its_tenant uuid, seed uuid, before bigint, after bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF seed IS NOT NULL THEN
        UPDATE dice_seed SET counter = after WHERE tenant_id = its_tenant AND id = seed AND counter = before AND revealed_at IS NULL;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'these dice were rolled by another' USING ERRCODE = 'serialization_failure';
        END IF;
    END IF;
    RETURN true;
END $$;

-- Stores that counters were seen, whatever became of the rolls, so that they are never used again. A transaction of its own, in one round
-- trip. Does nothing for a seed that was revealed, or that a rollback removed.
CREATE FUNCTION spend_dice(its_tenant uuid, who text, seed uuid, last bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    settings text := set_config('app.tenant_id', its_tenant::text, true) || set_config('app.who', who, true);
BEGIN
    UPDATE dice_seed SET counter = last WHERE tenant_id = its_tenant AND id = seed AND counter < last AND revealed_at IS NULL;
    RETURN FOUND;
END $$;
