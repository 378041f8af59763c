// The part of the browser's WebSocket that foundry-bridge.js uses, over node:http, for Node before 22, which has no WebSocket.
// RFC 6455: an upgrade, masked text frames out, text, ping and close frames in. Only ws://; use Node 22 or a browser for wss://.

import { createHash, randomBytes } from 'node:crypto';
import { request } from 'node:http';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT = 1, CLOSE = 8, PING = 9, PONG = 10;

export default class WebSocket extends EventTarget {
    #socket = null;
    #buffer = Buffer.alloc(0);
    #pieces = [];
    #closed = null;

    constructor(address) {
        super();
        const url = new URL(address);
        if (url.protocol !== 'ws:') throw new TypeError(`${url.protocol} needs Node 22 or newer`);
        const key = randomBytes(16).toString('base64');
        const headers = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': key, 'Sec-WebSocket-Version': '13' };
        const upgrade = request({ host: url.hostname, port: url.port || 80, path: url.pathname + url.search, headers });
        upgrade.on('upgrade', (response, socket, head) => {
            const accept = createHash('sha1').update(key + GUID).digest('base64');
            if (response.headers['sec-websocket-accept'] !== accept) return socket.destroy();
            this.#socket = socket;
            socket.setNoDelay(true);
            socket.on('data', (bytes) => this.#take(bytes));
            socket.on('error', () => socket.destroy());
            socket.on('close', () => this.#end(1006, ''));
            this.dispatchEvent(new Event('open'));
            if (head.length > 0) this.#take(head);
        });
        upgrade.on('response', (response) => { response.resume(); this.#end(1006, `HTTP ${response.statusCode}`); });
        upgrade.on('error', (error) => this.#end(1006, error.message));
        upgrade.end();
    }

    send(text) {
        this.#write(TEXT, Buffer.from(text));
    }

    close(code = 1000, reason = '') {
        const bytes = Buffer.alloc(2);
        bytes.writeUInt16BE(code);
        this.#write(CLOSE, Buffer.concat([bytes, Buffer.from(reason)]));
    }

    #write(opcode, payload) {
        if (!this.#socket || this.#socket.destroyed) return;
        const length = payload.length;
        const size = length < 126 ? 0 : length < 65536 ? 2 : 8;
        const head = Buffer.alloc(2 + size);
        head[0] = 0x80 | opcode;
        head[1] = 0x80 | (size === 0 ? length : size === 2 ? 126 : 127);
        if (size === 2) head.writeUInt16BE(length, 2);
        if (size === 8) head.writeBigUInt64BE(BigInt(length), 2);
        const mask = randomBytes(4);
        const masked = Buffer.from(payload.map((byte, i) => byte ^ mask[i % 4]));
        this.#socket.write(Buffer.concat([head, mask, masked]));
    }

    #take(bytes) {
        this.#buffer = Buffer.concat([this.#buffer, bytes]);
        while (this.#buffer.length >= 2) {
            const short = this.#buffer[1] & 0x7f;
            const start = short < 126 ? 2 : short === 126 ? 4 : 10;
            if (this.#buffer.length < start) return;
            const length = short < 126 ? short
                : short === 126 ? this.#buffer.readUInt16BE(2) : Number(this.#buffer.readBigUInt64BE(2));
            if (this.#buffer.length < start + length) return;
            const [first, payload] = [this.#buffer[0], this.#buffer.subarray(start, start + length)];
            this.#buffer = this.#buffer.subarray(start + length);
            this.#frame(first & 0x0f, (first & 0x80) !== 0, payload);
        }
    }

    #frame(opcode, isLast, payload) {
        if (opcode === PING) return this.#write(PONG, payload);
        if (opcode === PONG) return;
        if (opcode === CLOSE) {
            const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005;
            this.#write(CLOSE, payload.subarray(0, 2));
            this.#socket.end();
            return this.#end(code, payload.subarray(2).toString());
        }
        this.#pieces.push(Buffer.from(payload));
        if (!isLast) return;
        const data = Buffer.concat(this.#pieces.splice(0)).toString();
        const message = new Event('message');
        message.data = data;
        this.dispatchEvent(message);
    }

    #end(code, reason) {
        if (this.#closed) return;
        this.#closed = Object.assign(new Event('close'), { code, reason });
        this.dispatchEvent(this.#closed);
    }
}
