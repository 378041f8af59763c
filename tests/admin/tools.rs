//! Tools of NPCs and owners in the editor: boxes, what stands beside them, and who has nothing to remember with.

use edge::users::Role;
use serde_json::json;

use super::{Visitor, field};
use crate::support::Server;

const NPCS: &str = "/admin/c/port-town/npcs";

/// The names whose boxes are ticked.
fn ticked(page: &str) -> Vec<String> {
    let boxes = page.split("name=\"available_tools-ticked\"").skip(1).map(|rest| rest.split_once('>').unwrap().0);
    let ticked = boxes.filter(|tag| tag.contains("checked")).map(|tag| tag.split("value=\"").nth(1).unwrap());
    ticked.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_npc_remembers_and_tools_are_ticked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let page = mara.get(&format!("{NPCS}/new")).await.expect(200).text;
    assert_eq!(ticked(&page), ["NPC_memorize"]);
    assert!(page.contains("Remember something about a player") && !page.contains("OWNER_memorize"), "{page}");
    let owner = mara.get("/admin/c/port-town/owners/new").await.expect(200).text;
    assert_eq!(ticked(&owner), ["OWNER_memorize"]);
    let made = [("name", "Zoe"), ("available_tools-boxes", "1"), ("available_tools-ticked", "NPC_memorize")];
    let path = mara.post(NPCS, &made).await.expect(303).header("location").to_owned();
    let zoe = world.get("/npcs/zoe").await.expect(200).body;
    assert_eq!(zoe["available_tools"], json!(["NPC_memorize"]));
    // What is written beside the boxes stays, as long as it is a list; what does not exist is pointed at.
    let own = r#"[{"name": "take_rest", "description": "Throw bones."}, "OWNER_memorize"]"#;
    let send = |others: &'static str| {
        [
            ("name", "Zoe"),
            ("version", "1"),
            ("available_tools-boxes", "1"),
            ("available_tools-ticked", "roll_dice"),
            ("available_tools", others),
        ]
    };
    let wrong = mara.post(&path, &send("{")).await.expect(422).text;
    assert!(wrong.contains("This is not JSON") && ticked(&wrong) == ["roll_dice"], "{wrong}");
    let unknown = mara.post(&path, &send(r#"[{"name": "take_rest"}, "fly"]"#)).await.expect(422).text;
    assert!(unknown.contains("There is no tool with this name"), "{unknown}");
    mara.post(&path, &send(own)).await.expect(303);
    let now = world.get("/npcs/zoe").await.body;
    assert_eq!(
        now["available_tools"],
        json!(["roll_dice", { "name": "take_rest", "description": "Throw bones." }, "OWNER_memorize"])
    );
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    assert_eq!(ticked(&page), ["roll_dice"]);
    assert!(field(&page, "available_tools").contains("Throw bones."), "{page}");
    assert!(
        page.contains("no model is offered them: “OWNER_memorize”") && page.contains("no tool to remember with"),
        "{page}"
    );
    // Sent again as it is, in whatever order it was stored, nothing changes.
    world.patch("/npcs/zoe", json!({ "available_tools": ["roll_dice", "NPC_memorize"] })).await.expect(200);
    let same = [
        ("name", "Zoe"),
        ("version", "3"),
        ("available_tools-boxes", "1"),
        ("available_tools-ticked", "NPC_memorize"),
        ("available_tools-ticked", "roll_dice"),
    ];
    mara.post(&path, &same).await;
    assert_eq!(world.get("/npcs/zoe").await.body["available_tools"], json!(["roll_dice", "NPC_memorize"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_nothing_to_remember_with_is_named_where_they_speak() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let turn = world.bob("player_alice", "Hello.").await.expect(200).id();
    for (tools, is_told) in [(json!(["NPC_memorize"]), false), (json!(["roll_dice"]), true)] {
        world.patch("/npcs/innkeeper_bob", json!({ "available_tools": tools })).await.expect(200);
        for path in [format!("turns/{turn}"), "lab?entity=npc:innkeeper_bob&player=player_alice&action=Hi".to_owned()] {
            let page = mara.get(&format!("/admin/c/port-town/{path}")).await.expect(200).text;
            assert_eq!(page.contains("id=\"forgets\""), is_told, "{path}: {page}");
        }
    }
    // And where nobody can act yet, the lab leads to where a character is made.
    tenant.post("/v1/campaigns", json!({ "name": "Empty" })).await.expect(201);
    tenant.post("/v1/campaigns/empty/npcs", json!({ "name": "Ann" })).await.expect(201);
    let page = mara.get("/admin/c/empty/lab").await.expect(200).text;
    assert!(page.contains("no character yet") && page.contains("/admin/c/empty/characters/new"), "{page}");
}
