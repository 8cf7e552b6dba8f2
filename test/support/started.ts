import { afterAll, beforeAll } from "vitest";

type Stoppable = { [Name in "stop" | "close" | "drop" | "remove"]?: () => unknown };

/** A value that exists while the tests of a file or of a group run. It is stopped, closed, dropped or removed after the last one. */
export function started<Value extends object>(start: () => Value | Promise<Value>): Value {
  let value: Value | undefined;
  beforeAll(async () => {
    value = await start();
  });
  afterAll(async () => {
    const { stop, close, drop, remove } = (value ?? {}) as Stoppable;
    await (stop ?? close ?? drop ?? remove)?.call(value);
  });
  const current = () => {
    if (!value) throw new Error("it is used before the tests start");
    return value;
  };
  return new Proxy({} as Value, {
    get: (_, name) => {
      const member: unknown = Reflect.get(current(), name, current());
      // Methods of a class may need its private fields.
      const isMethod = typeof member === "function" && !Object.hasOwn(current(), name);
      return isMethod ? member.bind(value) : member;
    },
    set: (_, name, member) => Reflect.set(current(), name, member),
    has: (_, name) => name in current(),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor: (_, name) => Reflect.getOwnPropertyDescriptor(current(), name),
  });
}
