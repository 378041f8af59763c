"""A fight, played with the client that openapi-python-client makes of openapi.yaml: begun, acted in until somebody falls, ended.

`./dev contract` makes the client, lets mypy look at this file with it, and runs it against a server with the demo world.
"""
import os
from typing import TypeVar

from tavernkeep_client import AuthenticatedClient
from tavernkeep_client.api.encounters import act_in_encounter, create_encounter, end_encounter
from tavernkeep_client.models.encounter_action_advance_turn import EncounterActionAdvanceTurn
from tavernkeep_client.models.encounter_action_advance_turn_action import EncounterActionAdvanceTurnAction
from tavernkeep_client.models.encounter_action_attack import EncounterActionAttack
from tavernkeep_client.models.encounter_action_attack_action import EncounterActionAttackAction
from tavernkeep_client.models.encounter_attack_input import EncounterAttackInput
from tavernkeep_client.models.encounter_create_input import EncounterCreateInput
from tavernkeep_client.models.encounter_end_input import EncounterEndInput
from tavernkeep_client.models.encounter_event_attacked import EncounterEventAttacked
from tavernkeep_client.models.encounter_outcome import EncounterOutcome
from tavernkeep_client.models.encounter_participant_input import EncounterParticipantInput
from tavernkeep_client.models.life import Life
from tavernkeep_client.models.problem import Problem

CAMPAIGN = "port-town"
ROUNDS_MAX = 100

T = TypeVar("T")


def ok(answer: T | Problem | None) -> T:
    """What was asked for; a problem ends the program."""
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"not taken: {answer}")
    return answer


def main() -> None:
    client = AuthenticatedClient(base_url=os.environ["TAVERNKEEP_URL"], token=os.environ["TAVERNKEEP_KEY"])
    scimitar = EncounterAttackInput(name="Scimitar", bonus=4, damage="1d6+2", damage_type="slashing")
    goblin = EncounterParticipantInput(
        id="goblin", name="Goblin", hp=7, max_hp=7, armor_class=15, is_enemy=True, attacks=[scimitar]
    )
    brakka = EncounterParticipantInput(id="brakka", character_id="brakka_stonehand")
    fight = ok(
        create_encounter.sync(
            CAMPAIGN, client=client, body=EncounterCreateInput(name="In the alley", participants=[brakka, goblin])
        )
    )
    fallen, turn, blows = None, fight.current_participant_id, 0
    for _ in range(ROUNDS_MAX):
        target = "brakka" if turn == "goblin" else "goblin"
        attack = EncounterActionAttack(
            action=EncounterActionAttackAction.ATTACK, participant_id=turn, target_id=target
        )
        if turn == "brakka":
            attack.weapon = "Battleaxe"
        told = ok(act_in_encounter.sync(CAMPAIGN, fight.encounter_id, client=client, body=attack))
        blows += sum(isinstance(event, EncounterEventAttacked) for event in told.events or [])
        fallen = next((one.name for one in told.participants if one.status is not Life.ALIVE), None)
        if fallen is not None:
            break
        over = EncounterActionAdvanceTurn(action=EncounterActionAdvanceTurnAction.ADVANCE_TURN)
        turn = ok(act_in_encounter.sync(CAMPAIGN, fight.encounter_id, client=client, body=over)).current_participant_id
    if fallen is None:
        raise SystemExit("nobody fell")
    outcome = EncounterOutcome.VICTORY if fallen == "Goblin" else EncounterOutcome.DEFEAT
    ended = ok(end_encounter.sync(CAMPAIGN, fight.encounter_id, client=client, body=EncounterEndInput(outcome=outcome)))
    lost = {update.participant_id: update.changes.hp.delta for update in ended.participant_updates}
    if not any(lost.values()):
        raise SystemExit(f"nobody was hurt: {lost}")
    print(f"Python: after {blows} blows {fallen} fell; {ended.outcome.value}, {lost}")


main()
