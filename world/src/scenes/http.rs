//! `/campaigns/{c}/scenes`.

use entity::scene;

use super::{SceneFilter, SceneInput, Scenes};
use edge::world_routes;

world_routes!(
    Scenes,
    SceneInput,
    scene::Model,
    SceneFilter,
    "scene",
    "scenes",
    "/v1/campaigns/{c}/scenes",
    "/v1/campaigns/{c}/scenes/{x}"
);

crate::revision_routes!(
    Scenes,
    scene::Model,
    "scene",
    "scenes",
    "/v1/campaigns/{c}/scenes/{x}/revisions",
    "/v1/campaigns/{c}/scenes/{x}/revisions/{seq}/restore"
);
