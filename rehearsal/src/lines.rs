//! The persona's phrases, and the English words that it reacts to.
//!
//! Phrases must never contain `<`, `>` or `&` (they also go into XML replies) and must fit any character and place.
//! `{name}` is the player's name. To add a topic, add a variant, its words in `WORDS` and a row in `phrases`.

/// The topic of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// Payment and gifts.
    Gift,
    Promise,
    Thanks,
    Help,
    /// The player asks to be remembered, or says their name.
    Remember,
    Theft,
    Attack,
    Quest,
    /// News for everyone.
    Spread,
}

/// Lower-case words that set a topic. A word that ends in `*` stands for all words with that beginning.
const WORDS: &[(Topic, &[&str])] = &[
    (Topic::Attack, &["attack*"]),
    (Topic::Theft, &["steal*", "stole", "stolen"]),
    (
        Topic::Gift,
        &["pay", "pays", "paid", "paying", "tip", "tips", "tipped", "gift*", "give", "gives", "gave", "giving"],
    ),
    (Topic::Promise, &["promise*", "promising"]),
    (Topic::Quest, &["quest", "quests"]),
    (Topic::Help, &["help*"]),
    (Topic::Thanks, &["thank*"]),
    (Topic::Remember, &["remember*"]),
];

/// The topic of an action, if it has one. Only actions with a topic are remembered.
pub(crate) fn topic(action: &str) -> Option<Topic> {
    let action = action.to_lowercase();
    if action.contains("tell everyone") || action.contains("spread the word") {
        return Some(Topic::Spread);
    }
    let words: Vec<&str> = action.split(|c: char| !c.is_alphanumeric()).collect();
    let heard = |cue: &&str| match cue.strip_suffix('*') {
        Some(stem) => words.iter().any(|word| word.starts_with(stem)),
        None => words.contains(cue),
    };
    let found = WORDS.iter().find(|(_, cues)| cues.iter().any(heard));
    let named = words.windows(2).any(|pair| pair == ["my", "name"]);
    found.map(|(topic, _)| *topic).or(named.then_some(Topic::Remember))
}

/// Greetings for a player who is new.
pub(crate) const GREETINGS: &[&str] = &[
    "{name}, is it? Well met.",
    "Well now, {name}. I do not think we have spoken before.",
    "A new face. Sit down, {name}.",
    "Good day to you, {name}.",
    "So you are {name}. I have time for a word.",
];

/// Greetings for a player who is remembered.
pub(crate) const RECOGNITIONS: &[&str] = &[
    "I remember you, {name}.",
    "{name}! I remember you well.",
    "Ah, I remember you, {name}; I had hoped you would come back.",
    "You again, {name}. I remember you, and what passed between us.",
];

/// Greetings for a player about whom an owner has told its NPCs.
pub(crate) const WARNED: &[&str] = &[
    "{name}. Those I answer to have told us all about you.",
    "I was told about you, {name}, and not by the gulls.",
    "So it is true what they told us of you, {name}?",
];

/// Phrases after a tool call.
pub(crate) const AFTER_TOOL: &[&str] = &[
    "There, {name}: it is done.",
    "That is settled, {name}.",
    "I will not forget it, {name}.",
    "So be it, {name}. What now?",
];

/// Phrases after a tool call if no player is named.
pub(crate) const AFTER_TOOL_UNNAMED: &[&str] = &[
    "It is done, and the tale goes on.",
    "That is settled. What happens next is yours to say.",
    "The moment passes, and all eyes turn back to the party.",
];

/// Phrases if no player acts.
pub(crate) const NARRATION: &[&str] = &[
    "The fire burns low and the talk dies down. Someone has to make the next move.",
    "A draught stirs the lamps, and for a moment nobody speaks. Then the world goes on.",
    "Somewhere outside a bell strikes the hour. What do you do?",
    "All is quiet, but it is the kind of quiet that does not last.",
];

/// What is told of a success and of a failure that the rules decided.
pub(crate) const SUCCEEDED: &[&str] = &[
    "It goes as {name} hoped, and nobody stands in the way.",
    "{name} manages it, and makes it look easy.",
    "A held breath, a sure hand: {name} has done it.",
];
pub(crate) const FAILED: &[&str] = &[
    "It does not go as {name} hoped.",
    "Close, but not close enough. {name} has to think of something else.",
    "{name} tries, and the world does not oblige.",
];

/// What is told of the world, if the prompt has something that fits the action. `{fact}` is a sentence of the lore.
pub(crate) const TOLD: &[&str] = &[
    "This much I know. {fact}",
    "Since you ask, {name}: {fact}",
    "Anybody here would tell you the same. {fact}",
    "{fact} More than that I cannot say.",
];

/// What is told if somebody asks about nothing that is known.
pub(crate) const RUMOURS: &[&str] =
    &["I know little of that. But have you heard? {fact}", "People talk, {name}. {fact}", "Ask me another. {fact}"];

/// What is said of the location.
pub(crate) const HERE: &[&str] = &["You see how it is here. {fact}", "That is how things are here. {fact}"];

/// The answer to somebody who asks for a name. `{own}` is the persona's.
pub(crate) const INTRODUCTIONS: &[&str] =
    &["I am {own}, and I am listening.", "They call me {own}. What can I do for you?", "{own}, at your service."];

const SMALL_TALK: &[&str] = &[
    "Times are hard, but the door is open.",
    "Ask what you like; I will answer what I can.",
    "You look like someone with a long road behind you.",
    "Mind your step around here after dark.",
    "There is always work for willing hands.",
    "Let us see where this leads.",
];

const ANSWERS: &[&str] = &[
    "That is a good question, and the answer depends on who is asking.",
    "I have heard talk of it, but I would not swear to any of it.",
    "Ask again when fewer ears are about.",
    "I would look to the old road first, if I were you.",
];

/// Second sentences for an action, either about its topic or small talk.
pub(crate) fn phrases(topic: Option<Topic>, question: bool) -> &'static [&'static str] {
    match topic {
        Some(Topic::Gift) => {
            &["That is generous, and I will keep it in mind.", "Your coin is good here, and so is your company."]
        }
        Some(Topic::Promise) => &["Your word is given, then, and I will hold you to it.", "A promise is a promise."],
        Some(Topic::Thanks) => &["No need for thanks, though they are welcome.", "It was little enough."],
        Some(Topic::Help) => &["Help is rare these days; tell me more.", "Then we help each other, as it should be."],
        Some(Topic::Remember) => &["I have a good memory for such things.", "That I will remember."],
        Some(Topic::Theft) => &["Keep your hands where I can see them.", "Things that vanish here are missed."],
        Some(Topic::Attack) => &["You will answer for that!", "Put that away, before somebody gets hurt!"],
        Some(Topic::Quest) => {
            &["Then listen closely, for I will say it only once.", "A quest, is it? There is one, if you dare."]
        }
        Some(Topic::Spread) => {
            &["Word will get around, you may count on it.", "By nightfall everyone will have heard."]
        }
        None if question => ANSWERS,
        None => SMALL_TALK,
    }
}

/// Whether somebody asks who the persona is.
pub(crate) fn asks_for_name(action: &str) -> bool {
    let action = action.to_lowercase();
    ["who are you", "your name", "who you are"].iter().any(|words| action.contains(words))
}

/// One phrase of a list, selected by a number, with the name inserted.
pub(crate) fn pick(list: &[&str], choice: u64, name: &str) -> String {
    let index = usize::try_from(choice % list.len().max(1) as u64).unwrap_or_default();
    list.get(index).unwrap_or(&"…").replace("{name}", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_are_words() {
        assert_eq!(topic("I pay the smith"), Some(Topic::Gift));
        assert_eq!(topic("I tiptoe past the payroll question"), None);
        assert_eq!(topic("Hello, my name is Alice"), Some(Topic::Remember));
        assert_eq!(topic("Spread the word!"), Some(Topic::Spread));
    }
}
