// What fields an object may have at a place, by the garden's OpenAPI.

export interface Schema {
  $ref?: string;
  allOf?: Schema[];
  type?: string;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  enum?: string[];
  default?: unknown;
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[];
}

export type Schemas = Record<string, Schema>;

/** kindSchema is that of a kind. */
export function kindSchema(schemas: Schemas, group: string, kind: string): Schema | undefined {
  return Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some((each) => each.group === group && each.kind === kind),
  );
}

function resolve(schemas: Schemas, schema: Schema | undefined): Schema | undefined {
  const [single] = schema?.allOf ?? [];
  const ref = schema?.$ref ?? single?.$ref;
  if (!ref) return schema;
  const target = schemas[ref.replace('#/components/schemas/', '')];
  return { ...target, description: schema?.description ?? target?.description };
}

/** schemaAt follows a path, in which a number is an item of a list. */
export function schemaAt(schemas: Schemas, root: Schema | undefined, path: (string | number)[]): Schema | undefined {
  let schema = resolve(schemas, root);
  for (const step of path) {
    const more = typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
    schema = resolve(schemas, typeof step === 'number' ? schema?.items : (schema?.properties?.[step] ?? more));
  }
  return schema;
}

export interface Place {
  /** Where the fields of the line belong. */
  path: (string | number)[];
  /** The field whose value is typed; undefined while its name is. */
  field?: string;
}

interface Level {
  indent: number;
  step: string | number;
}

/** placeAt tells where in a YAML document the end of a text is, by its indentation. Flow style is not looked into. */
export function placeAt(text: string): Place {
  const lines = text.split('\n');
  const last = lines.pop() ?? '';
  const stack: Level[] = [];
  for (const line of lines) read(line, stack);
  const { indent, rest } = enter(last, stack, true);
  while ((stack.at(-1)?.indent ?? -1) >= indent) stack.pop();
  const match = /^([\w.\-/]+):(?:\s|$)/.exec(rest);
  return { path: stack.map(({ step }) => step), field: match?.[1] };
}

function read(line: string, stack: Level[]) {
  if (/^\s*(#.*)?$/.test(line)) return;
  const { indent, rest } = enter(line, stack, false);
  const match = /^([\w.\-/]+):(?:\s|$)/.exec(rest);
  if (!match) return;
  while ((stack.at(-1)?.indent ?? -1) >= indent) stack.pop();
  stack.push({ indent, step: match[1] ?? '' });
}

// enter takes the dashes of a line as items of lists, and returns where its text begins.
function enter(line: string, stack: Level[], isLast: boolean): { indent: number; rest: string } {
  let indent = line.length - line.trimStart().length;
  let rest = line.slice(indent);
  while (/^-(\s|$)/.test(rest)) {
    // A list may stand below its name without being indented.
    while ((stack.at(-1)?.indent ?? -1) > indent || isItemAt(stack.at(-1), indent)) stack.pop();
    if ((stack.at(-1)?.indent ?? -1) === indent && typeof stack.at(-1)?.step === 'number') stack.pop();
    stack.push({ indent: indent - 0.5 + 1, step: 0 });
    const next = rest.slice(1);
    const spaces = next.length - next.trimStart().length;
    indent += 1 + spaces;
    rest = next.trimStart();
    if (isLast && rest === '') indent = Math.max(indent, (stack.at(-1)?.indent ?? 0) + 1);
  }
  return { indent, rest };
}

const isItemAt = (level: Level | undefined, indent: number) =>
  level !== undefined && typeof level.step === 'number' && level.indent > indent;

export interface Completion {
  label: string;
  detail?: string;
  info?: string;
}

/** completionsAt are the fields, or the values, that may stand at the end of a text. */
export function completionsAt(schemas: Schemas, root: Schema | undefined, text: string): Completion[] {
  const { path, field } = placeAt(text);
  if (field !== undefined) return valuesOf(schemaAt(schemas, root, [...path, field]));
  const { properties = {} } = schemaAt(schemas, root, path) ?? {};
  return Object.entries(properties).map(([label, property]) => {
    const resolved = resolve(schemas, property);
    return { label, detail: resolved?.type ?? 'object', info: resolved?.description };
  });
}

function valuesOf(schema: Schema | undefined): Completion[] {
  if (schema?.type === 'boolean') return [{ label: 'true' }, { label: 'false' }];
  return (schema?.enum ?? []).map((label) => ({ label, info: schema?.description }));
}
