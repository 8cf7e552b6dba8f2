// Written by tools/write-client-tables.ts.
export const VERSION = "0.1.0";
