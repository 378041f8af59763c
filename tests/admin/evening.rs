//! An evening at the table in three windows, from the invitations to the committed fight: a game master and a player at desks, another player
//! on a phone. The model is slow, so that much else happens before it has answered.

use rehearsal::{Reply, Script};
use serde_json::json;
use tavernkeep::demo;

use super::{looks::barriers, sign_in, walk::press};
use crate::support::{
    DEMO_PASSWORD, Server,
    browser::{Browser, Look},
};

const PHONE: u32 = 390;

/// Three windows at one table.
struct Evening {
    master: Browser,
    /// Lirien Vale's player, at a desk.
    lirien: Browser,
    /// Brakka Stonehand's player, on a phone in the dark.
    brakka: Browser,
}

impl Evening {
    /// The game master signs in, and sends two players a link each.
    async fn begin(server: &Server) -> Option<Self> {
        let master = Browser::open().await?;
        sign_in(&master, server, demo::EMAIL, DEMO_PASSWORD).await;
        let lirien = Browser::open().await?;
        let brakka = Browser::open_as(Look::Dark).await?;
        brakka.narrow(Some(PHONE)).await;
        for (player, name, window) in
            [("lirien_vale", "Lirien Vale", &lirien), ("brakka_stonehand", "Brakka Stonehand", &brakka)]
        {
            master.goto(&format!("{}/admin/c/port-town", server.url)).await;
            press(&master, "#steps a", "Invite a player").await;
            master.choose("#player", player).await;
            press(&master, "main button", "Make a link").await;
            master.sees("[role=status]", &format!("The link for {name} is ready")).await;
            let link = master.js("return document.querySelector('[role=status] a.secret').href").await;
            window.goto(link.as_str().unwrap()).await;
            window.until("the table", "return document.getElementById('log')").await;
        }
        let evening = Self { master, lirien, brakka };
        evening.to_the_table(server).await;
        Some(evening)
    }

    async fn to_the_table(&self, server: &Server) {
        self.master.goto(&format!("{}/admin/c/port-town/table", server.url)).await;
        self.master.sees("#here", "Lirien Vale").await;
    }

    fn windows(&self) -> [(&'static str, &Browser); 3] {
        [("game master", &self.master), ("desk", &self.lirien), ("phone", &self.brakka)]
    }

    /// Everybody's log has these words.
    async fn all_see(&self, words: &str) {
        for (_, window) in self.windows() {
            window.sees("#said", words).await;
        }
    }

    async fn views(&self, view: &str) {
        self.brakka.click(&format!("label[for='view-{view}']")).await;
    }

    /// Nothing was refused, nothing is a barrier, and nothing is wider than any screen.
    async fn is_well(&self) {
        for (whose, window) in self.windows() {
            assert_eq!(window.text("#alert").await, "", "{whose}");
            assert_eq!(barriers(window).await, Vec::<String>::new(), "{whose}");
            for width in [320, 820, 1280] {
                window.narrow(Some(width)).await;
                let over = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(window.js(over).await, json!(0), "{whose} at {width}");
            }
            window.narrow(None).await;
        }
        self.brakka.narrow(Some(PHONE)).await;
    }
}

async fn says(window: &Browser, words: &str) {
    window.write("#text", words).await;
    press(window, ".say button", "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_windows_talk_while_a_slow_model_answers() {
    let server = Server::with_demo().await;
    let Some(evening) = Evening::begin(&server).await else { return };
    let Evening { master, lirien, brakka } = &evening;
    brakka.click("label[for='view-talk']").await;
    let answers = ["The keeper? *He looks away.* Not here.", "The keeper went out on Tuesday."];
    server.model.set_script(Script::replies(answers.map(|words| Reply::text(words).held())));
    lirien.choose("#to", "innkeeper_bob").await;
    says(lirien, "I ask about the keeper.").await;
    lirien.sees("#pending", "Innkeeper Bob").await;
    // The others need not wait for the model.
    brakka.choose("#to", "").await;
    says(brakka, "I keep an eye on the door.").await;
    evening.all_see("I keep an eye on the door.").await;
    master.choose("#as", "innkeeper_bob").await;
    master.choose("#to", "brakka_stonehand").await;
    says(master, "Two of them, behind the yard.").await;
    brakka.sees("#said", "Two of them, behind the yard.").await;
    says(brakka, "/w gm Does he mean the thieves?").await;
    master.sees("#said", "Does he mean the thieves?").await;
    server.model.let_go(1);
    evening.all_see("He looks away.").await;
    let heard = lirien.text("#said").await;
    assert!(!heard.contains("behind the yard") && !heard.contains("the thieves"), "{heard}");

    // Another attempt comes into the place of the first, for everybody.
    press(lirien, "#said .retry:not([hidden]) button", "Try again").await;
    brakka.until("the former to be pale", "return document.querySelector('.message.ai.pale')").await;
    server.model.let_go(1);
    evening.all_see("The keeper went out on Tuesday.").await;
    for (whose, window) in evening.windows() {
        window.until(whose, "return !document.querySelector('.pale, [data-pending]')").await;
        assert!(!window.text("#said").await.contains("He looks away."), "{whose}");
    }

    // The game master asks for dice, and changes what is so.
    master.click(".more-ways summary").await;
    master.choose("#of", "skill perception").await;
    master.write("#dc", "1").await;
    press(master, ".asking button", "Ask").await;
    for window in [lirien, brakka] {
        press(window, "#said .asked button", "Roll").await;
    }
    master.until("both rolls", "return document.querySelectorAll('#said .rolled').length === 2").await;
    press(master, "#here a", "Brakka Stonehand").await;
    master.sees("#change", "31 of 31 hit points").await;
    master.write("#amount", "3").await;
    press(master, "#change button", "Damage").await;
    master.sees("#change", "28 of 31 hit points").await;
    evening.views("fights").await;
    brakka.sees("#fights", "28/31").await;
    evening.views("talk").await;

    // A line is corrected, and the AI is paused, for everybody at once.
    let own = "#said article.player:not(.whisper, .rolled) .mend";
    let last = format!("return [...document.querySelectorAll('{own}')].at(-1).click()");
    master.js(&last).await;
    master.sees(".mending", "Strike it").await;
    master.write(".mending textarea", "I keep both eyes on the door.").await;
    press(master, ".mending [action$=correct] button", "").await;
    evening.all_see("I keep both eyes on the door.").await;
    press(master, "#paused button", "Pause").await;
    for window in [lirien, brakka] {
        window.sees("#paused", "The game master has paused the AI").await;
    }
    press(master, "#paused button", "").await;
    for window in [lirien, brakka] {
        window.until("the pause to be over", "return document.getElementById('paused').innerText === ''").await;
    }
    evening.is_well().await;
}

/// What a game master does to a participant of the fight at the table.
async fn does(master: &Browser, name: &str, amount: u32, button: &str) {
    let link = format!("[...document.querySelectorAll('.fight li b a')].find((it) => it.textContent === {name:?})");
    master.until(format!("{name} in the fight"), format!("return Boolean({link})")).await;
    master.js(&format!("{link}.click()")).await;
    master.sees("#change h2", name).await;
    master.write("#amount", &amount.to_string()).await;
    press(master, &format!("#change [value={button}]"), "").await;
    master.until("the form to be done", "return document.querySelector('#change .done')").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_windows_fight_from_the_first_roll_to_the_sheets() {
    let server = Server::with_demo().await;
    let Some(evening) = Evening::begin(&server).await else { return };
    let Evening { master, lirien, brakka } = &evening;
    // The fight that is there ends, and the next one begins with whom the game master names.
    let fights = format!("{}/admin/c/port-town/encounters", server.url);
    master.goto(&fights).await;
    press(master, "tbody a", "Trouble behind the Gilded Gull").await;
    master.choose("#outcome", "fled").await;
    press(master, "#end button", "End it").await;
    master.sees("#now", "Somebody fled").await;
    lirien.until("the fight to be over", "return !document.querySelector('.fight')").await;
    master.goto(&format!("{fights}/new")).await;
    master.write("#name", "On the quay").await;
    for slug in ["player_alice", "tam_underbough"] {
        master.js(&format!("document.querySelector('[name=party][value={slug}]').checked = false")).await;
    }
    master.write("[name=who-0-who]", "goblin").await;
    master.write("[name=who-0-count]", "× 2").await;
    press(master, "main button", "Roll initiative and begin").await;
    master.sees("[role=status]", "The fight begins.").await;
    brakka.until("the fight", "return document.querySelector('.fight h2')").await;
    evening.views("fights").await;
    for window in [lirien, brakka] {
        window.sees(".fight h2", "On the quay").await;
    }
    // The game master leads it at the table. One of them is not seen yet.
    evening.to_the_table(&server).await;
    does(master, "Goblin 2", 0, "conceal").await;
    for window in [lirien, brakka] {
        window.until("the hidden", "return !document.querySelector('.fight').innerText.includes('Goblin 2')").await;
    }
    does(master, "Goblin 2", 0, "reveal").await;
    brakka.sees(".fight", "Goblin 2").await;

    // A round, while an answer is waited for.
    server.model.set_script(Script::always(Reply::text("Not in my yard!").held()));
    lirien.choose("#to", "innkeeper_bob").await;
    says(lirien, "I call for help.").await;
    lirien.sees("#pending", "Innkeeper Bob").await;
    evening.to_the_table(&server).await;
    for turn in 0.. {
        if master.text("#fights h2").await.contains("round 2") {
            break;
        }
        assert!(turn < 5, "{}", master.text("#fights").await);
        let whose = master.text("#fights .whose").await;
        let own = "It is your turn";
        let (window, told, whom, weapon) = match () {
            () if whose.contains("Lirien") => (lirien, own, ".fight .enemy button", "Fire Bolt"),
            () if whose.contains("Brakka") => (brakka, own, ".fight .enemy button", "Battleaxe"),
            () => (master, whose.as_str(), ".fight li:not(.enemy):has([data-letters='BS']) button", "Scimitar"),
        };
        window.sees(".whose", told).await;
        // Who is left to attack may be nobody.
        if window.text(".fight").await.contains(weapon) {
            press(window, whom, weapon).await;
            evening.all_see(&format!("with {weapon}: ")).await;
            let spent = "return !document.querySelector('.whose').innerText.includes('an action')";
            window.until("the action to be spent", spent).await;
        }
        press(window, ".fight button", "End turn").await;
        let name = whose.split("'s turn").next().unwrap();
        let next = format!("return !document.querySelector('#fights .whose')?.innerText.startsWith({name:?})");
        master.until("the next turn", next).await;
    }
    // The dice of foes are the game master's alone. Both may have fallen before their turn.
    let told = master.text("#said").await;
    assert_eq!(told.contains("attacks Brakka"), told.contains("The dice of Goblin"), "{told}");
    assert!(!lirien.text("#said").await.contains("The dice of"));
    server.model.let_go(1);
    evening.all_see("Not in my yard!").await;
    evening.is_well().await;

    // What was done by mistake is taken back; then both goblins fall.
    does(master, "Lirien Vale", 2, "damage").await;
    lirien.sees("#said", "Lirien Vale takes 2 damage").await;
    let undo = "document.querySelector('#fights .undo button').value";
    let before = master.js(&format!("return {undo}")).await;
    does(master, "Brakka Stonehand", 5, "damage").await;
    brakka.sees("#said", "Brakka Stonehand takes 5 damage").await;
    master.until("the state that is undone", format!("return {undo} !== {before}")).await;
    press(master, "#fights .undo button", "Undo the last action").await;
    let undone = "return !document.querySelector('#said').innerText.includes('Brakka Stonehand takes 5 damage')";
    brakka.until("the damage to be taken back", undone).await;
    for foe in ["Goblin 1", "Goblin 2"] {
        does(master, foe, 99, "damage").await;
        evening.lirien.sees("#said", &format!("{foe} dies.")).await;
    }
    for window in [lirien, brakka] {
        window.sees(".down", "You see no enemy standing.").await;
    }
    master.sees(".down", "No enemy is standing.").await;
    press(master, "#fights .lead-it button", "Victory").await;
    master.sees("#change", "Ended in round 2: Victory").await;
    for window in [lirien, brakka] {
        window.until("the fight to be over", "return !document.querySelector('.fight')").await;
    }
    master.sees("#here .unwritten", "is not in the sheets yet").await;
    press(master, "#change button", "Write it to the sheets").await;
    master.sees("#change .done", "Written to the sheets of").await;
    assert_eq!(master.count("#change button").await, 0);
    master.until("nothing to wait", "return !document.querySelector('#here .unwritten')").await;
    evening.is_well().await;
}
