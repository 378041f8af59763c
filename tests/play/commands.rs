//! What begins with a slash, and how it is shown.

use serde_json::{Value, json};

use super::{ALICE, Guest, MALLORY, token};
use crate::support::{Answer, Server, World};

/// The newest message.
async fn newest(world: &World<'_>) -> Value {
    world.get("/messages?sort=-created_at&limit=1").await.expect(200).items()[0].clone()
}

async fn says(guest: &Guest, text: &str) -> Answer {
    guest.send(guest.form("/play/port-town/say", &[("to", ""), ("text", text)])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_do_what_people_know_them_to() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let mallory = Guest::seated(&server, &token(&tenant, MALLORY).await).await;
    let id = world.get("/characters/player_mallory").await.expect(200).id();
    for (text, content, member, is) in [
        ("/r 1d1+4 # to open the <door>", "to open the <door>: 1d1+4 = 5", "flavor", json!("to open the <door>")),
        ("/ROLL 1d1", "1d1 = 1", "type", json!("roll")),
        ("/gmroll 1d1+6", "1d1+6 = 7", "whisper_to", json!(["gm"])),
        ("/gmr 1d1", "1d1 = 1", "whisper_to", json!(["gm"])),
        ("/me bows *deeply*.", "bows *deeply*.", "flavor", json!("emote")),
        ("/ooc Pizza?", "Pizza?", "flavor", json!("ooc")),
        ("//shrug", "/shrug", "type", json!("chat")),
        ("/w mal Run.", "Run.", "whisper_to", json!([id])),
        ("/w \"PLAYER_M\" Hide.", "Hide.", "whisper_to", json!([id])),
        ("/whisper Game Master: I am the thief.", "I am the thief.", "whisper_to", json!(["gm"])),
    ] {
        says(&alice, text).await.expect(303);
        let message = newest(&world).await;
        assert_eq!(
            (&message["content"], &message[member], &message["author"]),
            (&json!(content), &is, &json!("player")),
            "{text}"
        );
    }
    let page = alice.page().await;
    for seen in [
        "<p dir=\"auto\"><bdi>Alice</bdi> bows <em>deeply</em>.</p>",
        "<code>1d1+6</code>",
        "<small>out of character</small>",
        "whispers to <bdi>the game master</bdi>",
        "whispers to <bdi>Mallory</bdi>",
        "<bdi>to open the &#60;door&#62;</bdi>",
    ] {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    let others = mallory.page().await;
    assert!(others.contains("Run.") && !others.contains("I am the thief.") && !others.contains("1d1+6"), "{others}");
    // A blind roll is told to who rolls, and shown to nobody but the game master.
    let told = says(&alice, "/blindroll 1d1+41 # luck").await.expect(200);
    assert!(told.text.contains("Only the game master sees what came of it."), "{}", told.text);
    let rolled = newest(&world).await;
    assert_eq!((&rolled["blind"], &rolled["roll"]["total"]), (&json!(true), &json!(42)));
    assert!(!alice.page().await.contains("<strong>42</strong>"));
    assert!(says(&alice, "/help").await.expect(200).text.contains("/w or /whisper NAME words"));
}

/// What is no command, or cannot be done, is refused and not said.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_command_is_not_said() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (slug, name) in [("malvin", "Malvin"), ("boy", "Innkeeper Bobby"), ("dm", "DM")] {
        world.post("/characters", json!({ "slug": slug, "name": name })).await.expect(201);
    }
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let before = world.get("/messages").await.expect(200).items().len();
    let long = format!("/r 1d4 # {}", "x".repeat(201));
    for (text, why) in [
        (
            "/wave",
            "There is no command /wave, and nothing was said. The commands are /w, /r, /gmroll, /blindroll, /me, /ooc, /help.",
        ),
        ("/", "There is no command /,"),
        ("/as Bob Hello.", "There is no command /as"),
        ("/w mal Run.", "several names begin with that. Write more of the one you mean: Mallory, Malvin."),
        // Who is meant may be an NPC, who cannot be whispered to.
        (
            "/w innk Psst.",
            "several names begin with that. Write more of the one you mean: Innkeeper Bobby, Innkeeper Bob.",
        ),
        ("/w Innkeeper Bob: Psst.", "You can only speak aloud to NPCs."),
        ("/w the thief is Mal", "You can whisper to"),
        ("/w zorro Run.", "You can whisper to DM, Innkeeper Bobby, Mallory, Malvin, gm"),
        ("/w \"\" Run.", "You can whisper to"),
        ("/w mallo", "Write your message after the name."),
        ("/me", "Write something after the command."),
        ("/ooc  ", "Write something after the command."),
        ("/gmroll", "there is no formula"),
        ("/r # luck", "there is no formula"),
        (&long, "in at most 200 characters"),
    ] {
        let refused = says(&alice, text).await.expect(422).text;
        assert!(refused.contains(why), "{text}: {refused}");
    }
    assert_eq!(world.get("/messages").await.expect(200).items().len(), before);
    // A title goes before a character's name.
    says(&alice, "/w dm I am the thief.").await.expect(303);
    assert_eq!(newest(&world).await["whisper_to"], json!(["gm"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dead_can_talk_out_of_character() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    world.patch("/characters/player_alice", json!({ "hp": 0, "death_saves": { "failures": 3 } })).await.expect(200);
    says(&alice, "/ooc What a pity.").await.expect(303);
    assert_eq!(newest(&world).await["content"], "What a pity.");
    says(&alice, "/me haunts them.").await.expect(409);
}
