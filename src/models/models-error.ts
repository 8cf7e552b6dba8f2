/** What is wrong with the file of models: one line for each mistake, with its place. */
export class ModelsError extends Error {}
