/** Errors in the models file: one line per mistake, with its position. */
export class ModelsError extends Error {}
