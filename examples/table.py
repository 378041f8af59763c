#!/usr/bin/env python3
"""A table in a terminal, in plain Python: says one thing, prints the answer as it comes, then what the journal kept of it.

    TAVERNKEEP_KEY=tk_… examples/table.py "I ask about the harbour."              # to an NPC: a key, or a player's token
    TAVERNKEEP_KEY=tk_… examples/table.py --npc "" "I open the cellar door."      # to the game master: makes a session
"""
import argparse, http.client, json, os, sys, time, urllib.error, urllib.request, uuid

LAST = ("turn.completed", "turn.failed", "turn.cancelled")
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name, default in {"url": "http://127.0.0.1:8080", "key": "", "campaign": "port-town", "npc": "innkeeper_bob",
                      "player": "player_alice"}.items():
    parser.add_argument(f"--{name}", default=os.environ.get(f"TAVERNKEEP_{name.upper()}", default))
parser.add_argument("action")
args = parser.parse_args()


def call(path, body=None, quietly=(), **headers):
    """Opens a request below the campaign. Problems end the program, but for those who ask to hear of them."""
    headers |= {"Authorization": f"Bearer {args.key}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    url = f"{args.url.rstrip('/')}/v1/campaigns/{args.campaign}{path}"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        if error.code >= 500 or problem["code"] in quietly:
            raise
        sys.exit(f"{error.code}: {problem['detail']} {problem.get('errors', '')}")


def events(stream):
    """Server-sent events. One counts when its empty line came, so that half of one is never shown."""
    event = {}
    for line in stream:
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        if field:
            event[field] = value.removeprefix(" ")
        elif event and line.strip() == b"":
            if "data" in event:
                yield event["event"], event["id"], json.loads(event["data"])
            event = {}


def turn(path, body):
    """A turn's events. A lost connection is opened again: by the same key until the turn is known, then after the last event."""
    turn_id = last = None
    key = {"Idempotency-Key": str(uuid.uuid4())}
    for _ in range(100):
        try:
            stream = call(f"/turns/{turn_id}/events", **{"Last-Event-ID": last}) if last else \
                call(path, body, ["idempotency_in_flight"], **key)
            for name, last, data in events(stream):
                turn_id = turn_id or data["turn_id"]
                yield name, data
                if name in LAST:
                    return
        except (OSError, http.client.HTTPException) as error:
            print(f"(no connection: {error})", file=sys.stderr)
        time.sleep(0.2)
    sys.exit("The server cannot be reached.")


path, body = f"/npcs/{args.npc}/turns", {"player_id": args.player, "action": args.action, "stream": True}
if not args.npc:
    session = json.load(call("/sessions", {"client_id": "table.py", "role": "gm"}))["id"]
    said = {"content": args.action, "speaker": {"name": args.player}, "player_id": args.player}
    call(f"/sessions/{session}/events", {"events": [{"type": "chat_message", "data": said}]})
    path, body = f"/sessions/{session}/turns", {"instruction": args.action, "stream": True}
for name, data in turn(path, body):
    if name == "text.delta":
        print(data["text"], end="", flush=True)
    elif name == "tool.call":
        print(f"\n[{data['name']} {json.dumps(data['arguments'], ensure_ascii=False)}]")
    elif name == "tool.result":
        for roll in data.get("result", {}).get("results", []):
            if roll.get("dice"):
                print(f"[{roll['formula']} = {roll['total']}: {' '.join(str(die['value']) for die in roll['dice'])}]")
        print(f"[{data['status']}]" if "result" in data else f"[{data['status']}: {data.get('error')}]")
if name != "turn.completed":
    sys.exit(f"\n{name}: {data.get('error')}")

print("\n-- kept:")
turn_id = data["turn"]["id"]
try:  # The journal is the game master's; a player is shown the messages of the turn.
    first = json.load(call(f"/turns/{turn_id}", None, ["forbidden"]))["journal"]["first_seq"]
    changes = json.load(call(f"/changes?after={first - 1}&limit=200", None, ["forbidden"]))["items"]
    kept = [change["after"] for change in changes if change["table"] == "message" and change["op"] == "insert"]
except urllib.error.HTTPError:
    kept = json.load(call(f"/messages?turn_id={turn_id}&sort=created_at"))["items"]
for message in kept:
    print(f"{message['speaker']['name']}: {message['content']}")
