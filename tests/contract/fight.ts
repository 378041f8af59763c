// A fight, played with the client that hey-api makes of openapi.yaml: begun, acted in until somebody falls, ended.
//
// `./dev contract` makes the client, compiles this file with it, and runs it against a server with the demo world.
import { client } from './hey/client.gen';
import { actInEncounter, createEncounter, endEncounter } from './hey/sdk.gen';
import type { EncounterAction, EncounterEvent } from './hey/types.gen';

declare const process: { env: Record<string, string | undefined> };

const campaign = 'port-town';
const roundsMax = 100;

client.setConfig({ baseUrl: process.env.TAVERNKEEP_URL, auth: () => process.env.TAVERNKEEP_KEY });

/** What an event says, told apart by its member `event`. */
function told(event: EncounterEvent): string {
    switch (event.event) {
        case 'attacked':
            return `an attack of ${event.by}`;
        case 'turn_started':
            return `the turn of ${event.participant}`;
        default:
            return event.event;
    }
}

async function main(): Promise<void> {
    const begun = await createEncounter({
        throwOnError: true,
        path: { campaign },
        body: {
            name: 'On the quay',
            participants: [
                { id: 'brakka', character_id: 'brakka_stonehand' },
                {
                    id: 'goblin', name: 'Goblin', hp: 7, max_hp: 7, armor_class: 15, is_enemy: true,
                    attacks: [{ name: 'Scimitar', bonus: 4, damage: '1d6+2', damage_type: 'slashing' }],
                },
            ],
        },
    });
    const path = { campaign, encounter: begun.data.encounter_id };
    const act = async (body: EncounterAction) => (await actInEncounter({ throwOnError: true, path, body })).data;
    let turn = begun.data.current_participant_id;
    const happened: string[] = [];
    let fallen: string | undefined;
    for (let round = 0; round < roundsMax && fallen === undefined; round += 1) {
        const own: EncounterAction =
            turn === 'goblin'
                ? { action: 'attack', participant_id: turn, target_id: 'brakka' }
                : { action: 'attack', participant_id: turn, target_id: 'goblin', weapon: 'Battleaxe' };
        const after = await act(own);
        happened.push(...(after.events ?? []).map(told));
        fallen = after.participants.find((one) => one.status !== 'alive')?.name;
        if (fallen === undefined) {
            turn = (await act({ action: 'advance_turn' })).current_participant_id;
        }
    }
    if (fallen === undefined) throw new Error('nobody fell');
    const outcome = fallen === 'Goblin' ? 'victory' : 'defeat';
    const ended = await endEncounter({ throwOnError: true, path, body: { outcome } });
    const lost = ended.data.participant_updates.map((update) => `${update.participant_id} ${update.changes.hp.delta}`);
    console.log(`TypeScript: after ${happened.length} events ${fallen} fell; ${ended.data.outcome}, ${lost.join(', ')}`);
}

main().catch((error: unknown) => {
    console.error(error);
    throw error;
});
