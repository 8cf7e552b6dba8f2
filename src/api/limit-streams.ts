import { DomainError } from "../domain/errors.ts";

/** Limits how many of these streams a server runs at a time; further ones are refused as overloaded. */
export function limitStreams<Parameters extends readonly unknown[], Message>(
  max: number,
  open: (...parameters: Parameters) => AsyncGenerator<Message, void>,
): (...parameters: Parameters) => AsyncGenerator<Message, void> {
  let running = 0;
  return async function* (...parameters) {
    if (running >= max) {
      throw new DomainError("overloaded", {
        message: `This server runs ${max} of these calls at a time. Try again later.`,
      });
    }
    running++;
    try {
      yield* open(...parameters);
    } finally {
      running--;
    }
  };
}
