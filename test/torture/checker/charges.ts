import {
  type Entry,
  isCutByDeadline,
  isCutByRevocation,
  isGeneration,
  isRefusal,
  isReply,
  isUnplannedFailure,
} from "../history.ts";
import { maxInputTokens } from "../settings.ts";
import { priceOf } from "../tenants.ts";
import { pieceOf, promptOf } from "../upstream.ts";
import { describe, type Facts, type Row, type Violation } from "./facts.ts";
import { isFailureOfOthers } from "./isolation.ts";
import { possibleCharges } from "./prices.ts";

const RULE = "2 one execution, one ledger entry";

/**
 * Invariant 2: what was executed and answered is charged once and correctly; a refused call leaves no ledger
 * row.
 */
export function checkCharges(facts: Facts): Violation[] {
  const violations: Violation[] = [];
  const fault = (text: string) => violations.push({ rule: RULE, text });
  const requests = new Map(facts.entries.map((entry) => [entry.requestId, entry]));
  for (const row of facts.rows) {
    if (row.kind !== "generation") continue;
    const entry = requests.get(row.requestId);
    if (!entry || !isGeneration(entry)) fault(`row ${row.id} has request ${row.requestId}, which is not a generation`);
    else checkRow(facts, row, entry, fault);
  }
  for (const entry of facts.entries) checkEntry(facts, entry, fault);
  return violations;
}

function checkEntry(facts: Facts, entry: Entry, fault: (text: string) => void): void {
  const rows = facts.rowsByRequest.get(entry.requestId) ?? [];
  if (rows.length > 1) fault(`${rows.length} rows for ${describe(entry)}`);
  if (isRefusal(entry) && !isCutByRevocation(entry) && rows.length > 0) fault(`a row for a refused call: ${describe(entry)}`);
  if (!isGeneration(entry)) return;
  // A unary call that fails on the server's side is free; one that exceeds the caller's deadline is not.
  const isFailed = entry.kind === "generate" && entry.ending === "answered" && entry.status >= 500;
  if (isFailed && !isCutByDeadline(entry) && rows.length > 0) {
    fault(`a row for a failed call: ${describe(entry)}`);
  }
  if (isReply(entry) && entry.idempotencyKey === undefined) {
    if (rows.length !== 1) fault(`${rows.length} rows for a reply: ${describe(entry)}`);
    else if (rows[0] && -rows[0].amountMicros !== entry.costMicros) {
      fault(`response says ${entry.costMicros} micros, charged ${-rows[0].amountMicros}: ${describe(entry)}`);
    }
  }
  if (isReply(entry)) checkText(entry, fault);
  // Delivered pieces are charged, whatever ended the stream.
  if (entry.pieces > 0 && entry.idempotencyKey === undefined && !facts.losesServers && rows.length !== 1)
    fault(`${entry.pieces} pieces, ${rows.length} rows: ${describe(entry)}`);
  if (facts.isCalm) checkCalm(facts, entry, rows, fault);
}

/** Without faults the outcome of every call is known. */
function checkCalm(facts: Facts, entry: Entry, rows: readonly Row[], fault: (text: string) => void): void {
  if (isUnplannedFailure(entry) && !isFailureOfOthers(entry)) fault(`failed without a fault: ${describe(entry)}`);
  if (entry.idempotencyKey !== undefined) return;
  const executions = facts.executions.get(entry.op) ?? [];
  // An upstream that ran until the end, the disconnect or the deadline is paid for.
  const worked = executions.filter(({ ended }) => ended === "whole" || ended === "left");
  if (worked.length > 0 && rows.length !== 1) fault(`${worked.length} executions, ${rows.length} rows: ${describe(entry)}`);
  if (isRefusal(entry) && !isCutByRevocation(entry) && executions.length > 0)
    fault(`executed although refused: ${describe(entry)}`);
  if (isReply(entry) && entry.reply?.mode !== "flaky" && executions.length !== 1) {
    fault(`executed ${executions.length} times: ${describe(entry)}`);
  }
}

/** The answer is the complete reply of the upstream to this prompt. */
function checkText(entry: Entry, fault: (text: string) => void): void {
  const pieces = entry.reply?.pieces ?? 0;
  const expected = Array.from({ length: pieces }, (_, i) => pieceOf(entry.op, i)).join("");
  if (entry.content !== expected) fault(`the text differs from the upstream's reply: ${describe(entry)}`);
}

/** The charge of a row must match the upstream's record of the execution. */
function checkRow(facts: Facts, row: Row, entry: Entry, fault: (text: string) => void): void {
  const made = (facts.executions.get(entry.op) ?? []).filter(({ pieces }) => pieces > 0);
  // A caller that ends the call pays for the input once the request was sent to the upstream.
  const isCut = entry.ending !== "answered" || isCutByDeadline(entry) || isCutByRevocation(entry);
  if (made.length === 0 && (!isCut || row.outputTokens > 0n)) {
    fault(`row ${row.id} without a produced reply: ${describe(entry)}`);
    return;
  }
  const { reply, maxTokens } = entry;
  if (!reply || maxTokens === undefined) return;
  const charge = -row.amountMicros;
  const possible = entry.model ? possibleCharges(facts, row, entry) : [priceOf(row.inputTokens, row.outputTokens)];
  if (!possible.includes(charge)) {
    fault(`${charge} micros for ${row.inputTokens} + ${row.outputTokens} tokens: ${describe(entry)}`);
  }
  const mostInput = maxInputTokens(Buffer.byteLength(promptOf(entry.op, reply)));
  if (row.inputTokens > mostInput || row.outputTokens > BigInt(maxTokens)) {
    fault(`more than the hold: ${row.inputTokens} + ${row.outputTokens} tokens: ${describe(entry)}`);
  }
  if (!isReply(entry)) {
    if (entry.pieces > row.outputTokens) fault(`${row.outputTokens} tokens for ${entry.pieces} pieces: ${describe(entry)}`);
    return;
  }
  const { inputTokens, outputTokens, mode } = reply;
  const isExact = mode === "fine" || mode === "flaky";
  if (isExact && (row.inputTokens !== BigInt(inputTokens) || row.outputTokens !== BigInt(outputTokens))) {
    fault(`${row.inputTokens} + ${row.outputTokens} tokens, reported ${inputTokens} + ${outputTokens}: ${describe(entry)}`);
  }
  // In the race for funds, tokens are counted if the bound does not fit the available balance.
  const isWholeHold = row.outputTokens === BigInt(maxTokens) && (entry.race === "funds" || row.inputTokens === mostInput);
  if (mode === "boast" && !isWholeHold) fault(`less than the hold: ${describe(entry)}`);
}
