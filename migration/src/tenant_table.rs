//! The one way to make a tenant table.
//!
//! Every table that holds a tenant's rows is declared here, so that none can be made without its keys, forced row
//! security, grants and, for world data, the journal. Never write `CREATE TABLE` for tenant data anywhere else; the
//! catalogue test lists every table that escaped.

/// What a table holds, and so who may write it and whether its changes are journaled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A tenant's world: versioned, stamped, journaled, writable by the server.
    World,
    /// The server's own bookkeeping for a tenant: writable by the server, not journaled.
    System,
    /// Written by triggers and definer functions only; the server reads it.
    ReadOnly,
}

/// A composite foreign key `(tenant_id, column)` to `(tenant_id, id)` of `table`.
pub struct Reference {
    pub column: &'static str,
    pub table: &'static str,
    /// What follows `REFERENCES …`, for example `ON DELETE CASCADE`.
    pub action: &'static str,
}

/// Shorthand for a [`Reference`].
pub const fn reference(column: &'static str, table: &'static str, action: &'static str) -> Reference {
    Reference { column, table, action }
}

/// A tenant table's declaration. `key` is what follows `tenant_id` in the primary key.
pub struct TenantTable {
    pub name: &'static str,
    pub kind: Kind,
    pub key: &'static str,
    pub columns: &'static str,
    pub references: &'static [Reference],
    /// Statements for further indexes and constraints; each index starts with `tenant_id`.
    pub indexes: &'static [&'static str],
}

impl TenantTable {
    /// The statements that make the table, in order. The tenant itself is referred to by the campaign (and by keys); what is
    /// in a campaign is its tenant's through the composite key, without a second check at each write.
    #[must_use]
    pub fn statements(&self) -> Vec<String> {
        let name = self.name;
        let stamps = match self.kind {
            Kind::World => {
                ", version bigint NOT NULL DEFAULT 1, updated_at timestamptz NOT NULL DEFAULT now(), \
                 extensions jsonb NOT NULL DEFAULT '{}', external_ref text"
            }
            Kind::System | Kind::ReadOnly => "",
        };
        let mut out = vec![format!(
            "CREATE TABLE {name} (tenant_id uuid NOT NULL, {}, created_at timestamptz NOT NULL DEFAULT now(){stamps}, \
             PRIMARY KEY (tenant_id, {}))",
            self.columns, self.key
        )];
        for Reference { column, table, action } in self.references {
            out.push(format!(
                "ALTER TABLE {name} ADD CONSTRAINT {name}_{column}_fkey FOREIGN KEY (tenant_id, {column}) \
                 REFERENCES {table} (tenant_id, id) {action}"
            ));
        }
        out.extend(self.indexes.iter().map(ToString::to_string));
        out.extend(self.policies());
        if self.kind == Kind::World {
            out.extend(world_triggers(name));
        }
        out
    }

    fn policies(&self) -> Vec<String> {
        let name = self.name;
        let tenant = "tenant_id = (SELECT nullif(current_setting('app.tenant_id', true), '')::uuid)";
        let grants = match self.kind {
            Kind::World | Kind::System => "SELECT, INSERT, UPDATE, DELETE",
            Kind::ReadOnly => "SELECT",
        };
        vec![
            format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"),
            format!("ALTER TABLE {name} FORCE ROW LEVEL SECURITY"),
            format!("CREATE POLICY tenant ON {name} TO tavernkeep_app USING ({tenant}) WITH CHECK ({tenant})"),
            format!("CREATE POLICY owner ON {name} TO CURRENT_USER USING (true) WITH CHECK (true)"),
            format!("GRANT {grants} ON {name} TO tavernkeep_app"),
        ]
    }
}

fn world_triggers(name: &str) -> Vec<String> {
    vec![
        format!("CREATE TRIGGER a_touch BEFORE UPDATE ON {name} FOR EACH ROW EXECUTE FUNCTION touch_row()"),
        format!(
            "CREATE CONSTRAINT TRIGGER b_journal AFTER INSERT OR UPDATE OR DELETE ON {name} \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION journal_row()"
        ),
    ]
}
