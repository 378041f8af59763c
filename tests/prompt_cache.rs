//! The base prompt's cache: which changes make it stale and which do not, whose words it must never mix, and what it is
//! worth in tokens of a provider's cache.

mod campaign;
mod edits;
mod gone;
mod replicas;

use std::sync::Arc;

use ai::{
    fair_cache::{FairCache, Weigh},
    prompt::key::Alias,
};
use entity::kind::EntityKind;
use uuid::Uuid;

use crate::support::{Client, Server, World};

struct Heavy(usize);

impl Weigh for Heavy {
    fn bytes(&self) -> usize {
        self.0
    }
}

#[test]
fn the_cache_is_bounded_in_bytes() {
    let cache: FairCache<usize, Heavy> = FairCache::new(1000);
    let tenant = Uuid::from_u128(1);
    for n in 0..1000 {
        cache.put(tenant, n, Arc::new(Heavy(90)));
        assert!(cache.bytes() <= 1000);
    }
    assert_eq!(cache.keys().len(), 11);
    // The least recently used goes first.
    assert!(cache.get(tenant, &989).is_some());
    cache.put(tenant, 1000, Arc::new(Heavy(90)));
    assert!(cache.get(tenant, &989).is_some() && cache.get(tenant, &990).is_none());
    // A value put again replaces itself; one too big for all others is not taken.
    cache.put(tenant, 1000, Arc::new(Heavy(50)));
    assert_eq!(cache.bytes(), 10 * 90 + 50);
    cache.put(tenant, 7, Arc::new(Heavy(251)));
    assert!(cache.get(tenant, &7).is_none());
    assert_eq!(cache.forget(tenant, |k, _| k % 2 == 0) + cache.keys().len(), 11);
    assert_eq!(cache.bytes(), cache.keys().len() * 90 - if cache.get(tenant, &1000).is_some() { 40 } else { 0 });
    cache.forget(tenant, |_, _| true);
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn a_busy_tenant_displaces_itself_first() {
    let cache: FairCache<usize, Heavy> = FairCache::new(1000);
    let (quiet, busy, other) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
    for n in 0..3 {
        cache.put(quiet, n, Arc::new(Heavy(100)));
        cache.put(other, n, Arc::new(Heavy(100)));
    }
    for n in 0..1000 {
        cache.put(busy, n, Arc::new(Heavy(100)));
    }
    let held = |tenant| cache.keys().iter().filter(|(t, _)| *t == tenant).count();
    assert_eq!((held(quiet), held(other), held(busy)), (3, 3, 4));
    assert!(cache.get(busy, &999).is_some());
    // Keys are apart by tenant.
    assert!(cache.get(quiet, &999).is_none());
}

/// What is forgotten of one tenant is not forgotten of others.
#[tokio::test(flavor = "multi_thread")]
async fn forgetting_one_tenant_leaves_the_others_what_they_had() {
    let server = Server::start().await;
    let tenants = [server.tenant("acme").await, server.tenant("other").await];
    let alias = |tenant: &Client<'_>| Alias {
        tenant: tenant.tenant,
        campaign: "port-town".to_owned(),
        kind: EntityKind::Npc,
        entity: "innkeeper_bob".to_owned(),
        player: "player_alice".to_owned(),
        mode: None,
    };
    let known = |tenant| server.app.prompts.cached_key(&alias(tenant)).is_some();
    for tenant in &tenants {
        tenant.world().await.bob("player_alice", "Hello.").await.expect(200);
        assert!(known(tenant));
    }
    let [acme, other] = &tenants;
    server.app.forget(acme.tenant);
    assert_eq!((known(acme), known(other)), (false, true));
    let world = World { client: other, slug: "port-town".to_owned() };
    assert_eq!(world.bob("player_alice", "Hello again.").await.expect(200).body["prompt"]["cache"], "hit");
}
