import { beforeEach, describe, expect, test } from "vitest";
import { Circuit } from "../../src/upstreams/runner/breaker.ts";

let nowMs: number;
let random: number;

beforeEach(() => {
  nowMs = 0;
  random = 0.5;
});

const createCircuit = (openMs: number, maxOpenMs: number) =>
  new Circuit({ openMs, maxOpenMs }, { now: () => nowMs, random: () => random });

/** Opens the circuit and returns how long it stays open. */
function openFor(circuit: Circuit): number {
  circuit.open();
  const from = nowMs;
  while (circuit.state === "open") nowMs++;
  return nowMs - from;
}

describe("a circuit", () => {
  test("is closed at first", () => {
    const circuit = createCircuit(100, 100);
    expect([circuit.isClosed, circuit.state, circuit.tryProbe()]).toEqual([true, "closed", false]);
  });

  test("allows one probe after its wait, and another when that one is cancelled", () => {
    const circuit = createCircuit(100, 100);
    circuit.open();
    expect(circuit.tryProbe()).toBe(false);
    nowMs = 100;
    expect([circuit.tryProbe(), circuit.tryProbe(), circuit.state]).toEqual([true, false, "half_open"]);
    circuit.cancelProbe();
    expect(circuit.tryProbe()).toBe(true);
  });

  test("allows another probe when one has no result for the maximum wait", () => {
    const circuit = createCircuit(100, 300);
    circuit.open();
    nowMs = 100;
    expect(circuit.tryProbe()).toBe(true);
    nowMs = 399;
    expect(circuit.tryProbe()).toBe(false);
    nowMs = 400;
    expect([circuit.tryProbe(), circuit.tryProbe()]).toEqual([true, false]);
  });

  test("waits between 0.5 and 1.5 times the configured wait", () => {
    const waits = [0, 0.999].map((value) => {
      random = value;
      return openFor(createCircuit(100, 100));
    });
    expect(waits).toEqual([50, 150]);
  });

  test("doubles its wait up to the maximum until it is reset", () => {
    const circuit = createCircuit(100, 300);
    expect([openFor(circuit), openFor(circuit), openFor(circuit), openFor(circuit)]).toEqual([100, 200, 300, 300]);
    circuit.close();
    expect(openFor(circuit)).toBe(300);
    circuit.reset();
    expect(openFor(circuit)).toBe(100);
  });
});
