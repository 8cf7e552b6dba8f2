import type { Interceptor } from "@connectrpc/connect";
import { translateErrors } from "../errors/translate-errors.ts";
import { takeDecoded } from "./decoded.ts";
import { validate } from "./validation.ts";

/** What every RPC passes between the gate and its service, outermost first. */
export const interceptors: Interceptor[] = [translateErrors, takeDecoded, validate];
