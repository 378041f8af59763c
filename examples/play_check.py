#!/usr/bin/env python3
"""Plays one AI turn and everything around it, and prints each call with its answer; `./dev play-check` runs it.

It needs TAVERNKEEP_URL and TAVERNKEEP_KEY (scopes read, write, play, tools, gm) and plays in a new campaign, which it does
not delete. It fails if something differs from docs/sessions.md, docs/streams.md and docs/dice.md. It works with any model,
because it does not check the model's words.
"""
import json, os, sys, urllib.error, urllib.request, uuid

URL = os.environ.get("TAVERNKEEP_URL", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("TAVERNKEEP_KEY", "")
NO_CHANGES = "No changes to game state since last AI turn"
CUT_AT = 1600
wrong = []


def call(method, path, body=None, **headers):
    """Sends a request and prints it with its answer. Returns the status and the answer."""
    headers |= {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    print(f"\n> {method} {path}" + ("" if body is None else f"  {json.dumps(body, ensure_ascii=False)}"))
    try:
        answer = urllib.request.urlopen(urllib.request.Request(URL + path, data, headers, method=method), timeout=120)
    except urllib.error.HTTPError as error:
        answer = error
    text = answer.read().decode()
    is_json = "json" in answer.headers.get("Content-Type", "")
    value = json.loads(text) if is_json else text
    shown = json.dumps(value, ensure_ascii=False, indent=1) if is_json else text
    print(f"< {answer.status} " + (shown if len(shown) <= CUT_AT else f"{shown[:CUT_AT]}… ({len(shown)} characters)"))
    return answer.status, value


def check(is_so, what):
    print(f"  {'ok   ' if is_so else 'WRONG'} {what}")
    if not is_so:
        wrong.append(what)


def made(path, body):
    status, value = call("POST", path, body)
    if status not in (200, 201):
        sys.exit(f"play-check: cannot continue: {path} answered {status}")
    return value


class Table:
    """A campaign with a player, and a session whose AI is the game master."""

    def __init__(self):
        slug = f"play-check-{uuid.uuid4().hex[:8]}"
        self.base = f"/v1/campaigns/{slug}"
        made("/v1/campaigns", {"slug": slug, "name": "Play check"})
        made(f"{self.base}/characters", {"name": "Alice", "slug": "player_alice", "player_name": "Ann", "race": "human"})
        made(f"{self.base}/npcs", {"name": "Innkeeper Bob", "slug": "innkeeper_bob", "personality_prompt": "You love gossip"})
        token = {"id": "t1", "name": "Alice", "actor_id": "player_alice", "x": 100, "y": 200, "is_player": True}
        scene = {"id": "s1", "name": "The Crooked Keel", "dimensions": {"width": 4000, "height": 3000, "grid": 50}}
        scene["tokens"] = [token]
        world = {"session_info": {"game_system": "dnd5e", "gm_name": "Maya", "players": ["Ann"]}, "active_scene": scene}
        session = made(f"{self.base}/sessions", {"client_id": "play-check", "role": "gm", "world_state": world})
        self.session, self.path = session["id"], f"{self.base}/sessions/{session['id']}"

    def tool(self, name, arguments):
        """Calls a tool as the session's AI would, and returns its result."""
        status, value = call("POST", f"{self.base}/tools/{name}", {"arguments": arguments, "session_id": self.session})
        check(status == 200 and value.get("status") == "succeeded", f"{name} succeeds")
        return value.get("result") or {}

    def report(self, kind, data):
        made(f"{self.path}/events", {"events": [{"type": kind, "data": data}]})

    def told(self):
        """The last message in the prompt of the AI's next turn."""
        _, value = call("POST", f"{self.path}/prompt", {})
        return value["messages"][-1]["content"]

    def turn(self, body):
        value = made(f"{self.path}/turns", body)
        check(value["status"] in ("succeeded", "limit_reached"), "the turn is completed")
        return value


def rolls(table):
    def roll(*asked):
        value = table.tool("roll_dice", {"rolls": list(asked)})
        check(value.get("count") == len(asked) == len(value.get("results", [])), "every roll has a result")
        return value.get("results") or [{}]

    def is_fair(result, dice, bonus):
        return result.get("success") is True and len(result["dice"]) == dice \
            and result["total"] == sum(die["value"] for die in result["dice"]) + bonus

    [one] = roll({"formula": "1d20+5", "flavor": "Attack"})
    check(is_fair(one, 1, 5) and one["flavor"] == "Attack", "a single roll has its die, total and flavour")
    several = roll({"formula": "2d6"}, {"formula": "1d8+3"})
    check(is_fair(several[0], 2, 0) and is_fair(several[-1], 1, 3), "several rolls in one call")
    [plain] = roll({"formula": "1d20"})
    check(is_fair(plain, 1, 0) and not plain["flavor"], "a roll without flavour")
    [bad] = roll({"formula": "2d6+"})
    check(bad.get("success") is False and bad["error"]["code"] == "invalid_formula", "an invalid formula gives an error")


def fights(table):
    none = {"in_combat": False, "message": "No active encounter"}
    check(table.tool("get_encounter", {}) == none, "out of combat there is no active encounter")
    alice = {"name": "Alice", "initiative": 17, "is_player": True, "is_current_turn": True, "token_id": "t1"}
    goblin = {"name": "Goblin", "initiative": 9, "is_player": False, "is_current_turn": False, "hp": 7, "max_hp": 7}
    state = {"in_combat": True, "combat_id": "c1", "name": "Ambush", "round": 1, "turn": 1, "combatants": [alice, goblin]}
    table.report("combat_state", {"combat_state": state})
    seen = table.tool("get_encounter", {})
    at = [seen.get(member) for member in ("in_combat", "combat_id", "round", "turn")]
    check(at == [True, "c1", 1, 1], "in combat the encounter is returned")
    check([c["name"] for c in seen.get("combatants", [])] == ["Alice", "Goblin"], "with its combatants in order")
    table.report("combat_state", {"combat_state": state | {"round": 2}})
    check(table.tool("get_encounter", {}).get("round") == 2, "the next round is returned")
    table.report("combat_state", {"combat_state": {"in_combat": False, "combat_id": "c1"}})
    check(table.tool("get_encounter", {}) == none, "after the fight there is no active encounter")


def chat(table):
    sent = table.tool("post_message", {"content": "The door creaks.", "speaker_name": "Narrator"})
    check(sent.get("sent_count") == 1 and sent["results"][0]["success"], "post_message sends")
    sent = table.tool("post_messages", {"messages": [{"content": "A bell."}, {"content": "Silence."}]})
    check(sent.get("sent_count") == 2, "post_messages, the old name, sends several at once")
    heard = table.tool("get_message_history", {"count": 50})
    said = [message.get("content") for message in heard.get("messages", [])]
    newest = ["The door creaks.", "A bell.", "Silence."]
    check(heard.get("count") == len(said) and said[-3:] == newest, "get_message_history returns them, oldest first")
    check(table.tool("get_messages", {"limit": 50}) == heard, "get_messages, the old name, returns the same")


def turns(table):
    told = table.told()
    check("World State Overview:" in told and "Recent changes" not in told, "the prompt of the first turn has the whole world")
    first = table.turn({"instruction": "Post: A bell rings in the harbour."})
    check(first.get("context") == "overview", "the first turn had an overview")
    _, delta = call("GET", f"{table.path}/delta")
    check(delta == {"has_changes": False, "message": NO_CHANGES}, "the AI's own words do not count as changes")
    check(NO_CHANGES in table.told(), "then the prompt says that nothing changed")
    table.report("chat_message", {"content": "What was that?", "speaker": {"name": "Ann"}})
    table.report("dice_roll", {"formula": "1d20 + 5", "total": 19, "results": [14], "flavor": "Perception"})
    _, delta = call("GET", f"{table.path}/delta")
    rolled = [{"formula": "1d20 + 5", "result": 19, "flavor": "Perception"}]
    expected = {"has_changes": True, "NewMessages": 2, "NewDiceRolls": rolled}
    check(delta == expected, "the delta has what players did, and nothing else")
    told = table.told()
    check("Recent changes to the game:" in told and "World State Overview" not in told, "the prompt of a later turn has the changes")
    second = table.turn({})
    check(second.get("context") == "delta", "the later turn had a delta")
    _, delta = call("GET", f"{table.path}/delta")
    check(delta == {"has_changes": False, "message": NO_CHANGES}, "a completed turn consumes the changes")


def streams(table):
    def read(text):
        events = [block.split("\n") for block in text.split("\n\n") if block.startswith("event")]
        events = [dict(line.split(": ", 1) for line in lines) for lines in events]
        return [(event["event"], event["id"], json.loads(event["data"])) for event in events]

    def joined(events):
        return "".join(data["text"] for name, _, data in events if name == "text.delta")

    body = {"player_id": "player_alice", "action": "I pay for my drink.", "stream": True}
    _, text = call("POST", f"{table.base}/npcs/innkeeper_bob/turns", body)
    events = read(text if isinstance(text, str) else "")
    names = [name for name, _, _ in events] or [""]
    check(names[0] == "turn.started" and names[-1] == "turn.completed", "a streamed turn begins and ends")
    if names[-1] != "turn.completed":
        return
    turn = events[-1][2]["turn"]
    path = f"{table.base}/turns/{turn['id']}/events"
    check(joined(events) == turn["narrative"], "its text deltas make up the narrative")
    _, text = call("GET", path, **{"Last-Event-ID": events[0][1]})
    check(joined(read(text)) == turn["narrative"], "a client that reconnects gets the rest")
    status, _ = call("GET", path, **{"Last-Event-ID": events[-1][1]})
    check(status == 204, "and nothing after the end")


if not KEY:
    sys.exit("play-check: set TAVERNKEEP_KEY to a key; it needs the scopes read, write, play, tools and gm")
try:
    table = Table()
    for part in (rolls, fights, chat, turns, streams):
        print(f"\n===== {part.__name__}")
        part(table)
except urllib.error.URLError as error:
    sys.exit(f"play-check: {URL}: {error.reason}")
print("\nplay-check: " + (f"{len(wrong)} not as documented: {'; '.join(wrong)}" if wrong else "all is as documented"))
sys.exit(1 if wrong else 0)
