import { setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Behaviour } from "./fake-upstream.ts";
import type { Reply } from "./wire.ts";

/** Replies successfully. Unspecified parts of the reply have default values. */
export function reply(said: Partial<Reply> = {}): Behaviour {
  return (turn) => {
    turn.head();
    turn.response.end(turn.whole({ ...turn.reply, ...said }));
  };
}

/** Starts a reply and completes it when the gate opens. */
export function replyWhen(gate: Promise<unknown>, pieces = 1): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.beginning(pieces));
    await gate;
    turn.response.end(
      turn.reply.pieces
        .slice(pieces)
        .map((piece) => turn.make(piece))
        .join("") + turn.wire.end(turn.reply),
    );
  };
}

/** Never responds. */
export const silent: Behaviour = () => undefined;

/** Sends interim responses until the client disconnects, and no response. */
export const onlyInterim: Behaviour = ({ response }) => {
  const timer = setInterval(() => response.writeProcessing(), 50);
  response.once("close", () => clearInterval(timer));
};

/** Sends the headers and this many pieces, then nothing more. */
export function silentAfter(pieces: number): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.beginning(pieces));
  };
}

/** Ends the response normally after this many pieces, without the end of the reply. */
export function endAfter(pieces: number): Behaviour {
  return (turn) => {
    turn.head();
    turn.response.end(turn.beginning(pieces));
  };
}

/** Closes the connection in the middle of the response, after this many pieces. */
export function hangUpAfter(pieces: number): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.beginning(pieces));
    turn.response.socket?.destroySoon();
  };
}

/** Resets the connection without responding. */
export const resetAtOnce: Behaviour = ({ response }) => {
  response.socket?.resetAndDestroy();
};

export function refuse(status: number, headers: Record<string, string> = {}, body?: string): Behaviour {
  return ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body ?? JSON.stringify({ error: { type: "some_error", message: `refused with ${status}` } }));
  };
}

/** Starts an error response and never ends it. */
export function refuseWithoutEnd(status: number): Behaviour {
  return async (turn) => {
    turn.response.writeHead(status, { "content-type": "application/json" });
    await turn.send('{"error":');
  };
}

/** Sends a 200 with an error inside, after this many pieces. */
export function errorInside(pieces: number, type = "overloaded_error", message = "no room"): Behaviour {
  return (turn) => {
    turn.head();
    const before = pieces > 0 ? turn.beginning(pieces) : "";
    turn.response.end(before + turn.wire.error(type, message));
  };
}

/** Sends any bytes and headers in place of a reply. */
export function raw(body: string | Buffer, headers: Record<string, string> = {}): Behaviour {
  return (turn) => {
    turn.head(headers);
    turn.response.end(body);
  };
}

/** Sends a valid reply compressed with gzip, although the client does not accept it. */
export const gzipped: Behaviour = (turn) => {
  turn.head({ "content-encoding": "gzip" });
  turn.response.end(gzipSync(turn.whole()));
};

/** Sends a valid reply one byte at a time, each in its own packet. */
export function byteByByte(said: Partial<Reply>): Behaviour {
  return async (turn) => {
    turn.response.socket?.setNoDelay(true);
    turn.head();
    for (const byte of Buffer.from(turn.whole({ ...turn.reply, ...said }))) {
      if (!(await turn.send(Buffer.of(byte)))) return;
      await setImmediate();
    }
    turn.response.end();
  };
}

/** Repeats the block until this many bytes are sent or the client has disconnected. */
export function flood(block: (turn: Parameters<Behaviour>[0]) => string, bytes: number, before = ""): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(before);
    for (let sent = 0; sent < bytes; ) {
      const data = Buffer.from(block(turn));
      sent += data.length;
      if (!(await turn.send(data))) return;
    }
    turn.response.end();
  };
}

/** Replies successfully, then closes the connection although it could be reused. */
export const replyAndClose: Behaviour = (turn) => {
  turn.head();
  const { socket } = turn.response;
  turn.response.end(turn.whole(), () => socket?.end());
};

/** Replies successfully, and ends the response when the gate opens. */
export function replyAndEndWhen(gate: Promise<unknown>): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.whole());
    await gate;
    turn.response.end();
  };
}
