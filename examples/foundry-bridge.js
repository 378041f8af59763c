// A frontend for the bridge in plain JavaScript, for a browser, a Foundry module, or Node. docs/bridge.md describes the frames.
//
// In Foundry: import FoundryBridge, and wire it up once the game is ready (see `inFoundry` at the end).
// Standalone: TAVERNKEEP_KEY=tk_… node examples/foundry-bridge.js ws://127.0.0.1:8080/v1/campaigns/port-town/bridge
//             plays a small table: it says hello, rolls what the AI asks for, runs a fight, and prints what the AI says.

const COME_BACK = { 1001: true, 1006: true, 1011: true, 1013: true, 4408: true };

// Node before 19 only has it in a module.
const webcrypto = globalThis.crypto ?? (await import('node:crypto')).webcrypto;

export class FoundryBridge {
    #socket = null;
    #attempts = 0;
    #stopped = false;
    #number = 0;
    #acks = new Map();

    /**
     * @param {object} settings `url` of the bridge, `connect`: the members of the first frame, and what the table does:
     *   `rollDice(formula, flavor)` → `{total, dice:[{faces, value}]}`, `combatState()` → the fight as it is,
     *   `onChat(message)`, `onChanged(message)`, `onDeleted(id)`, `onWorldState(state)`, `onConnected(data)`,
     *   `onClosed(code, reason)`, `onError(error)`.
     */
    constructor(settings) {
        this.settings = settings;
    }

    start(WebSocket = globalThis.WebSocket) {
        this.WebSocket = WebSocket;
        this.#stopped = false;
        const socket = (this.#socket = new WebSocket(this.settings.url));
        socket.addEventListener('open', () => this.#put({ type: 'connect', ...this.settings.connect }));
        socket.addEventListener('message', (event) => this.#take(JSON.parse(event.data)));
        socket.addEventListener('close', (event) => this.#closed(event.code, event.reason));
        socket.addEventListener('error', () => {});
    }

    stop() {
        this.#stopped = true;
        this.#socket?.close(1000, '');
    }

    /** Reports something; resolves when it is stored, rejects with the server's error. */
    report(type, data) {
        const request_id = `r${++this.#number}`;
        return new Promise((resolve, reject) => {
            this.#acks.set(request_id, { resolve, reject });
            this.#put({ type, request_id, data });
        });
    }

    #put(frame) {
        this.#socket.send(JSON.stringify({ ...frame, timestamp: new Date().toISOString() }));
    }

    async #take({ type, request_id, data }) {
        const table = this.settings;
        switch (type) {
            case 'connected':
                this.#attempts = 0;
                return table.onConnected?.(data);
            case 'ack':
            case 'error': {
                const waits = this.#acks.get(request_id);
                this.#acks.delete(request_id);
                if (type === 'ack') return waits?.resolve(data.results);
                return waits ? waits.reject(Object.assign(new Error(data.message), data)) : table.onError?.(data);
            }
            case 'execute_roll': {
                const results = [];
                for (const { formula, flavor } of data.rolls) {
                    try {
                        results.push({ formula, flavor, success: true, ...(await table.rollDice(formula, flavor)) });
                    } catch (error) {
                        results.push({ formula, flavor, success: false, error: error.message });
                    }
                }
                return this.#put({ type: 'roll_result', request_id, data: { results } });
            }
            case 'combat_state_refresh':
                return this.#put({ type: 'combat_state', request_id, data: { combat_state: await table.combatState() } });
            case 'chat_response':
                return table.onChat?.(data.message);
            case 'message_changed':
                return table.onChanged?.(data.message);
            case 'message_deleted':
                return table.onDeleted?.(data.id);
            case 'world_state':
                return table.onWorldState?.(data);
        }
    }

    // Do not reconnect after a stop, a bad credential, or a newer connection with the same name.
    #closed(code, reason) {
        for (const { reject } of this.#acks.values()) reject(new Error(`closed: ${code}`));
        this.#acks.clear();
        this.settings.onClosed?.(code, reason);
        if (this.#stopped || !COME_BACK[code]) return;
        const wait = Math.min(30_000, 500 * 2 ** this.#attempts++) * (0.5 + Math.random() / 2);
        setTimeout(() => this.start(this.WebSocket), wait);
    }
}

/** Rolls `2d6 + 3` and the like: dice, numbers, plus and minus. A real table has dice of its own. */
export function rollPlainly(formula) {
    const dice = [];
    let total = 0;
    const terms = formula.replace(/\s+/g, '').match(/[+-]?[^+-]+/g) ?? [];
    for (const term of terms) {
        const sign = term.startsWith('-') ? -1 : 1;
        const match = /^(?:(\d*)d(\d+)|(\d+))$/.exec(term.replace(/^[+-]/, ''));
        if (!match) throw new Error(`This table cannot roll ${term}.`);
        if (match[3]) {
            total += sign * Number(match[3]);
            continue;
        }
        for (let n = 0; n < Number(match[1] || 1); n++) {
            const [word] = webcrypto.getRandomValues(new Uint32Array(1));
            const value = 1 + Math.floor((word / 2 ** 32) * Number(match[2]));
            dice.push({ faces: Number(match[2]), value });
            total += sign * value;
        }
    }
    return { total, dice };
}

/** The settings of a Foundry module: its own dice, chat and combat tracker. Call it in `Hooks.once('ready', …)`. */
export function inFoundry({ game, Roll, ChatMessage, Hooks }, url, token) {
    const combatState = () => {
        const combat = game.combat;
        if (!combat?.started) return { in_combat: false, combat_id: combat?.id };
        const combatants = combat.turns.map((c, i) => ({
            name: c.name, initiative: c.initiative, is_player: c.hasPlayerOwner, is_current_turn: i === combat.turn,
            token_id: c.tokenId, hp: c.actor?.system?.attributes?.hp?.value, max_hp: c.actor?.system?.attributes?.hp?.max,
        }));
        return { in_combat: true, combat_id: combat.id, round: combat.round, turn: combat.turn + 1, combatants };
    };
    const bridge = new FoundryBridge({
        url,
        connect: { client_id: `foundry-${game.world.id}-${game.user.id}`, token, role: 'gm', dice: 'frontend' },
        combatState,
        async rollDice(formula, flavor) {
            const roll = await new Roll(formula).evaluate();
            await roll.toMessage({ flavor, flags: { tavernkeep: { own: true } } });
            const dice = roll.dice.map((d) => ({ faces: d.faces, results: d.results.map(({ result }) => ({ result })) }));
            return { total: roll.total, dice };
        },
        onChat: (message) => ChatMessage.create({
            content: message.content, speaker: { alias: message.speaker.alias ?? message.speaker.name },
            flags: { tavernkeep: { own: true, id: message.id } },
        }),
        onChanged: ({ id, content }) => game.messages.find((m) => m.flags?.tavernkeep?.id === id)?.update({ content }),
        onDeleted: (id) => game.messages.find((m) => m.flags?.tavernkeep?.id === id)?.delete(),
    });
    Hooks.on('createChatMessage', (message) => {
        // Skip what the AI itself said or rolled.
        if (message.flags?.tavernkeep?.own || message.author?.id !== game.user.id) return;
        const said = { id: message.id, content: message.content, speaker: { name: message.speaker?.alias ?? game.user.name } };
        const rolls = message.rolls.map((r) => ({ formula: r.formula, total: r.total }));
        // The server's id of the message, by which it tells of changes.
        bridge.report(rolls.length > 0 ? 'dice_roll' : 'chat_message', rolls.length > 0 ? { ...said, rolls } : said)
            .then(([{ message_id }]) => message_id && message.setFlag('tavernkeep', 'id', message_id));
    });
    for (const hook of ['combatStart', 'updateCombat', 'deleteCombat']) {
        Hooks.on(hook, () => bridge.report('combat_state', { combat_state: combatState() }));
    }
    return bridge;
}

async function main([url]) {
    const say = (kind, what) => console.log(JSON.stringify({ kind, ...what }));
    const goblin = { name: 'Goblin', initiative: 9, is_player: false, is_current_turn: true, token_id: 't2', hp: 7, max_hp: 7 };
    let round = 1;
    const combatState = () => ({ in_combat: true, combat_id: 'c1', name: 'Ambush', round, turn: 1, combatants: [goblin] });
    const bridge = new FoundryBridge({
        url,
        connect: { client_id: 'example', token: process.env.TAVERNKEEP_KEY, role: 'gm', dice: 'frontend' },
        combatState: () => ({ ...combatState(), round: ++round }),
        rollDice: async (formula) => rollPlainly(formula),
        onChat: ({ speaker, content }) => say('chat', { speaker: speaker.name, content }),
        onChanged: ({ id, content }) => say('changed', { id, content }),
        onDeleted: (id) => say('deleted', { id }),
        onClosed: (code, reason) => say('closed', { code, reason }),
        onError: (error) => say('error', error),
        async onConnected({ session_id }) {
            await bridge.report('chat_message', { id: 'hello', content: 'Is anyone there?', speaker: { name: 'Ann' } });
            await bridge.report('combat_state', { combat_state: combatState() });
            say('connected', { session_id });
        },
    });
    process.on('SIGTERM', () => bridge.stop());
    bridge.start(globalThis.WebSocket ?? (await import('./websocket.js')).default);
}

if (typeof process !== 'undefined' && process.argv[1] === new URL(import.meta.url).pathname) await main(process.argv.slice(2));
