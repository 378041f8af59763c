-- Encounters: their states, their logs and who takes part.

-- Where a fight is, for lists and the journal. Every action raises its version. `last_action` is what the newest action did to those who
-- fight; deltas find it in the journal.
CREATE TABLE encounter (
    tenant_id uuid NOT NULL,
    id uuid NOT NULL,
    campaign_id uuid NOT NULL,
    name text NOT NULL,
    status text NOT NULL,
    round int NOT NULL,
    turn int NOT NULL,
    current_participant_id text,
    participant_count int NOT NULL,
    outcome text,
    notes text,
    hidden boolean NOT NULL DEFAULT false,
    last_action jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL DEFAULT 1,
    updated_at timestamptz NOT NULL DEFAULT now(),
    extensions jsonb NOT NULL DEFAULT '{}',
    external_ref text,
    PRIMARY KEY (tenant_id, id),
    CONSTRAINT encounter_campaign_id_fkey FOREIGN KEY (tenant_id, campaign_id) REFERENCES campaign (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('encounter', 'world');
CREATE INDEX encounter_active ON encounter (tenant_id, campaign_id, id) WHERE status = 'active';
CREATE INDEX encounter_list ON encounter (tenant_id, campaign_id, id);
CREATE INDEX encounter_name ON encounter (tenant_id, campaign_id, name COLLATE natural_order, id);
CREATE INDEX encounter_updated ON encounter (tenant_id, campaign_id, updated_at, id);
CREATE UNIQUE INDEX encounter_external_ref_key ON encounter (tenant_id, campaign_id, external_ref) WHERE external_ref IS NOT NULL;

-- The state after action `seq` is `state` with the events of `tail` folded in. Most actions write only the short tail.
CREATE TABLE encounter_state (
    tenant_id uuid NOT NULL,
    encounter_id uuid NOT NULL,
    beginning json NOT NULL,
    state json NOT NULL,
    tail json NOT NULL,
    seq bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, encounter_id),
    CONSTRAINT encounter_state_encounter_id_fkey FOREIGN KEY (tenant_id, encounter_id) REFERENCES encounter (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('encounter_state', 'system');

-- One row for each action. The events of all rows, folded onto the beginning, give the state. `told` are the messages that told it.
CREATE TABLE encounter_log (
    tenant_id uuid NOT NULL,
    encounter_id uuid NOT NULL,
    seq bigint NOT NULL,
    action json NOT NULL,
    events json NOT NULL,
    told uuid[] NOT NULL DEFAULT '{}',
    turn_id uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant_id, encounter_id, seq),
    CONSTRAINT encounter_log_encounter_id_fkey FOREIGN KEY (tenant_id, encounter_id) REFERENCES encounter (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('encounter_log', 'system');
CREATE INDEX encounter_log_turn ON encounter_log (tenant_id, turn_id) WHERE turn_id IS NOT NULL;

-- The records that take part: their version when they joined, and whether they were committed. Who has left is committed as well, but is in
-- no fight any more. `since_at` is the time of the transaction that wrote the member.
CREATE TABLE encounter_member (
    tenant_id uuid NOT NULL,
    encounter_id uuid NOT NULL,
    participant_id text NOT NULL,
    kind text NOT NULL,
    record_id uuid NOT NULL,
    has_left boolean NOT NULL DEFAULT false,
    committed_at timestamptz,
    turn_id uuid,
    since_at timestamptz NOT NULL DEFAULT now(),
    created_at timestamptz NOT NULL DEFAULT now(),
    version bigint NOT NULL,
    PRIMARY KEY (tenant_id, encounter_id, participant_id),
    CONSTRAINT encounter_member_encounter_id_fkey FOREIGN KEY (tenant_id, encounter_id) REFERENCES encounter (tenant_id, id) ON DELETE CASCADE
);
CALL make_tenant_table('encounter_member', 'system');
CREATE INDEX encounter_member_turn ON encounter_member (tenant_id, turn_id) WHERE turn_id IS NOT NULL;
CREATE UNIQUE INDEX encounter_member_record ON encounter_member (tenant_id, record_id, encounter_id);
