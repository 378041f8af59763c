//! `/campaigns/{c}/owners`.

use super::{OwnerFilter, OwnerInput, OwnerView, Owners};
use edge::world_routes;

world_routes!(
    Owners,
    OwnerInput,
    OwnerView,
    OwnerFilter,
    "owner",
    "owners",
    "/v1/campaigns/{c}/owners",
    "/v1/campaigns/{c}/owners/{x}"
);

crate::revision_routes!(
    Owners,
    OwnerView,
    "owner",
    "owners",
    "/v1/campaigns/{c}/owners/{x}/revisions",
    "/v1/campaigns/{c}/owners/{x}/revisions/{seq}/restore"
);
