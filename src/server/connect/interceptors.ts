import type { Interceptor } from "@connectrpc/connect";
import { translateErrors } from "../errors/translate-errors.ts";
import { takeDecoded } from "./decoded.ts";
import { validate } from "./validation.ts";

/** The interceptors between the gate and a service, outermost first. */
export const interceptors: Interceptor[] = [translateErrors, takeDecoded, validate];
