//! Whom a player is offered and may speak to, and whispers at the table.

use serde_json::json;

use super::{log_of, player, tenant, town};
use crate::{
    play::{Guest, token},
    support::{Server, until},
};

const ALICE: &str = "player_alice";

#[tokio::test(flavor = "multi_thread")]
async fn players_speak_to_those_at_their_place() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    world.post("/npcs", json!({ "slug": "cook", "name": "Cook", "location": "Starting Room" })).await.expect(201);
    let guest = Guest::seated(&server, &token(&acme, ALICE).await).await;
    let page = guest.get("/play/port-town").await.expect(200).text;
    for (slug, offered) in [("cook", true), ("innkeeper_bob", true), ("harbour_ilse", false)] {
        assert_eq!(page.contains(&format!("value=\"{slug}\"")), offered, "{slug}: {page}");
    }
    let say = async |to: &str| guest.send(guest.form("/play/port-town/say", &[("to", to), ("text", "Hello.")])).await;
    let far = say("harbour_ilse").await.expect(403);
    assert!(far.text.contains("Ilse is not at the location of Alice"), "{}", far.text);
    say("cook").await.expect(303);
    // The page does not wait for the answer.
    let has_answered = async || world.get("/turns").await.items().iter().all(|turn| turn["status"] == "succeeded");
    until("the cook's answer", has_answered).await;
    // The same by the API: a player's token is refused, a game master speaks to all.
    let alice = player(&acme, ALICE).await;
    let turn =
        async |npc: &str, client: &crate::support::Client<'_>| client.npc_turn("port-town", npc, ALICE, "Hi.").await;
    turn("harbour_ilse", &alice).await.problem(403, "forbidden");
    turn("harbour_ilse", &acme).await.expect(200);
    turn("harbour_ilse", &alice).await.problem(403, "forbidden");
    turn("cook", &alice).await.expect(200);
    // Who moves meets others, also where the prompt was kept.
    world.patch("/characters/player_alice", json!({ "location": "harbour" })).await.expect(200);
    turn("harbour_ilse", &alice).await.expect(200);
    turn("cook", &alice).await.problem(403, "forbidden");
    let page = guest.get("/play/port-town").await.expect(200).text;
    assert!(page.contains("value=\"harbour_ilse\"") && !page.contains("value=\"cook\""), "{page}");
    // Nobody knows where she is: anybody may be there.
    world.patch("/characters/player_alice", json!({ "location": null })).await.expect(200);
    turn("cook", &alice).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whisper_is_for_whom_it_names() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let world = town(&acme).await;
    world.post("/characters", json!({ "slug": "anna", "name": "Anna Maria" })).await.expect(201);
    world.post("/characters", json!({ "slug": "anna_b", "name": "Anna" })).await.expect(201);
    let guest = Guest::seated(&server, &token(&acme, ALICE).await).await;
    let write = async |text: &str| guest.send(guest.form("/play/port-town/say", &[("to", ""), ("text", text)])).await;
    for text in ["/w Mallory The key is mine.", "/whisper anna maria: Psst.", "/W \"Anna\" You too.", "/w gm I cheat."]
    {
        write(text).await.expect(303);
    }
    for (slug, words) in [("player_mallory", "The key is mine."), ("anna", "Psst."), ("anna_b", "You too.")] {
        assert_eq!(log_of(&player(&acme, slug).await).await, [words], "{slug}");
    }
    assert_eq!(log_of(&player(&acme, ALICE).await).await.len(), 4, "one's own whispers are seen");
    assert!(guest.get("/play/port-town").await.expect(200).text.contains("whispers"));
    for (text, why) in [
        ("/w Nobody Hello.", "You can whisper to Anna, Anna Maria, Mallory, gm"),
        ("/w", "You can whisper to"),
        ("/w Mallory", "Write your message after the name"),
        ("/w Innkeeper Bob A drink.", "You can only speak aloud to NPCs"),
        ("/w Alice Myself.", "You can whisper to"),
    ] {
        let refused = write(text).await.expect(422);
        assert!(refused.text.contains(why), "{text}: {}", refused.text);
    }
    assert_eq!(log_of(&acme).await.len(), 4, "what was meant as a whisper is not said aloud");
    // What only looks like a command is refused, too, unless it is said on purpose.
    write("/wave").await.expect(422);
    write("//wave").await.expect(303);
    assert_eq!(log_of(&player(&acme, "player_mallory").await).await, ["The key is mine.", "/wave"]);
}
