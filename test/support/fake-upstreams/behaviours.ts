import { setImmediate } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Behaviour } from "./fake-upstream.ts";
import type { Reply } from "./wire.ts";

/** Replies well, with what is not said otherwise as usual. */
export function reply(said: Partial<Reply> = {}): Behaviour {
  return (turn) => {
    turn.head();
    turn.response.end(turn.whole({ ...turn.reply, ...said }));
  };
}

/** Begins a reply and waits for the gate to end it. */
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

/** Never answers. */
export const silent: Behaviour = () => undefined;

/** Answers with the headers and so many pieces, and nothing more. */
export function silentAfter(pieces: number): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.beginning(pieces));
  };
}

/** Ends the response as if it were whole, after so many pieces. */
export function endAfter(pieces: number): Behaviour {
  return (turn) => {
    turn.head();
    turn.response.end(turn.beginning(pieces));
  };
}

/** Hangs up in the middle of the response, after so many pieces. */
export function hangUpAfter(pieces: number): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.beginning(pieces));
    turn.response.socket?.destroySoon();
  };
}

/** Resets the connection instead of answering. */
export const resetAtOnce: Behaviour = ({ response }) => {
  response.socket?.resetAndDestroy();
};

export function refuse(status: number, headers: Record<string, string> = {}, body?: string): Behaviour {
  return ({ response }) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(
      body ?? JSON.stringify({ error: { type: "some_error", message: `refused with ${status}` } }),
    );
  };
}

/** Begins to refuse, and does not come to an end. */
export function refuseWithoutEnd(status: number): Behaviour {
  return async (turn) => {
    turn.response.writeHead(status, { "content-type": "application/json" });
    await turn.send('{"error":');
  };
}

/** A 200 with an error in it, after so many pieces. */
export function errorInside(pieces: number, type = "overloaded_error", message = "no room"): Behaviour {
  return (turn) => {
    turn.head();
    const before = pieces > 0 ? turn.beginning(pieces) : "";
    turn.response.end(before + turn.wire.error(type, message));
  };
}

/** Any bytes in place of a reply, with any headers. */
export function raw(body: string | Buffer, headers: Record<string, string> = {}): Behaviour {
  return (turn) => {
    turn.head(headers);
    turn.response.end(body);
  };
}

/** A good reply that is compressed although nobody can read that. */
export const gzipped: Behaviour = (turn) => {
  turn.head({ "content-encoding": "gzip" });
  turn.response.end(gzipSync(turn.whole()));
};

/** A good reply that comes a byte at a time, each in a packet of its own. */
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

/** Sends the block again and again until so many bytes are out or the caller has gone. */
export function flood(
  block: (turn: Parameters<Behaviour>[0]) => string,
  bytes: number,
  before = "",
): Behaviour {
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

/** Replies well, and closes the connection although it could be kept. */
export const replyAndClose: Behaviour = (turn) => {
  turn.head();
  const { socket } = turn.response;
  turn.response.end(turn.whole(), () => socket?.end());
};

/** Replies well, and ends the response when the gate opens. */
export function replyAndEndWhen(gate: Promise<unknown>): Behaviour {
  return async (turn) => {
    turn.head();
    await turn.send(turn.whole());
    await gate;
    turn.response.end();
  };
}
