/** Everything that serves calls: most of the code, so it is imported while the database starts. */
export { createOperatorServer } from "./operator-server.ts";
export { createParts } from "./parts.ts";
export { createPublicServer } from "./public-server.ts";
