#!/usr/bin/env python3
"""A table in a terminal: sends one action, prints the answer as it comes, then the messages that were stored.

    TAVERNKEEP_KEY=tk_… examples/table.py "I ask about the harbour."              # to an NPC, with a key or a player's token
    TAVERNKEEP_KEY=tk_… examples/table.py --npc "" "I open the cellar door."      # to the game master, in a new session
"""
import argparse, http.client, json, os, sys, time, urllib.error, urllib.request, uuid

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name, default in {"url": "http://127.0.0.1:8080", "key": "", "campaign": "port-town", "npc": "innkeeper_bob",
                      "player": "player_alice"}.items():
    parser.add_argument(f"--{name}", default=os.environ.get(f"TAVERNKEEP_{name.upper()}", default))
parser.add_argument("action")
args = parser.parse_args()

def call(path, body=None, headers={}):
    """Sends a request about the campaign. Errors that a retry cannot fix end the program."""
    headers = headers | {"Authorization": f"Bearer {args.key}", "Content-Type": "application/json"}
    url = f"{args.url.rstrip('/')}/v1/campaigns/{args.campaign}{path}"
    try:
        return urllib.request.urlopen(urllib.request.Request(url, body and json.dumps(body).encode(), headers), timeout=60)
    except urllib.error.HTTPError as error:
        problem = json.load(error)
        if error.code >= 500 or problem["code"] == "idempotency_in_flight":
            raise
        sys.exit(f"{error.code}: {problem['detail']} {problem.get('errors', '')}")

def events(stream):
    """Server-sent events. An event is complete with its empty line, so that half an event is never shown."""
    event = {}
    for line in stream:
        field, _, value = line.decode().rstrip("\r\n").partition(":")
        if line.strip():
            event[field] = value.removeprefix(" ")
        elif "data" in event:
            yield event["event"], event["id"], json.loads(event["data"])
            event = {}

def turn(path, body):
    """A turn's events. Reconnects after a lost connection: with the same key until the turn is known, then after the last event."""
    turn_id = last = None
    key = {"Idempotency-Key": str(uuid.uuid4())}
    for _ in range(100):
        try:
            again = (f"/turns/{turn_id}/events", None, {"Last-Event-ID": last}) if last else (path, body, key)
            for name, last, data in events(call(*again)):
                turn_id = turn_id or data["turn_id"]
                yield name, data
                if name in ("turn.completed", "turn.failed", "turn.cancelled"):
                    return
        except (OSError, http.client.HTTPException) as error:
            print(f"(no connection: {error})", file=sys.stderr)
        time.sleep(0.2)
    sys.exit("The server cannot be reached.")

path, body = f"/npcs/{args.npc}/turns", {"player_id": args.player, "action": args.action, "stream": True}
if not args.npc:
    session = json.load(call("/sessions", {"client_id": "table.py", "role": "gm"}))["id"]
    path, body = f"/sessions/{session}/turns", {"instruction": args.action, "stream": True}
for name, data in turn(path, body):
    if name == "text.delta":
        print(data["text"], end="", flush=True)
    elif name in ("tool.call", "tool.result"):
        print(f"\n[{json.dumps(data, ensure_ascii=False)}]")
if name != "turn.completed":
    sys.exit(f"\n{name}: {data.get('error')}")
print("\n-- kept:")
for message in json.load(call(f"/messages?turn_id={data['turn']['id']}&sort=created_at"))["items"]:
    print(f"{message['speaker']['name']}: {message['content']}")
