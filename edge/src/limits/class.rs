//! What a limit counts, and the value that a tenant has for it.

use crate::tenants::Tenant;

/// What a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    Requests,
    Tools,
    Turns,
}

impl Class {
    /// The limit's name in headers, and the tenant's value.
    pub(super) fn of(self, tenant: &Tenant) -> (&'static str, u32) {
        match self {
            Class::Requests => ("requests", tenant.limits.requests_per_minute),
            Class::Tools => ("tools", tenant.limits.tools_per_minute),
            Class::Turns => ("turns", tenant.limits.turns_per_minute),
        }
    }
}
