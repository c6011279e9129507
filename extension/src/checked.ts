/** Values of the wire, compared with the types that both sides know: a kernel of another version is not trusted. */

import { SHAPES, WHOLE_MAX } from './wire.ts';

/** A message that this side of the wire does not understand. */
export class WireError extends Error {}

export type Shape =
  | 'string'
  | 'number'
  | 'boolean'
  | 'null'
  | { readonly list: Shape }
  | { readonly map: Shape }
  | { readonly any: readonly Shape[] }
  | { readonly object: string };

export type Fields = { readonly [name: string]: unknown };

const SHAPES_OF = SHAPES as unknown as { readonly [kind: string]: { readonly [field: string]: Shape } };

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The value as an object of a kind; fields that the kind does not have are left out.
 *
 * @param where names the value in errors.
 * @param isPatch whether fields may be missing.
 */
export function objectOf<T>(kind: string, value: unknown, where: string, isPatch = false): T {
  if (!isFields(value)) {
    throw new WireError(`the kernel sent ${where} that is not an object: ${shown(value)}`);
  }
  const shapes = SHAPES_OF[kind];
  const made: { [name: string]: unknown } = {};
  for (const [name, shape] of Object.entries(shapes)) {
    if (name in value) {
      made[name] = checked(shape, value[name], `${where}.${name}`);
    } else if (!isPatch) {
      throw new WireError(`the kernel sent ${where} without '${name}'`);
    }
  }
  return made as T;
}

function checked(shape: Shape, value: unknown, where: string): unknown {
  if (typeof shape === 'string') {
    if (!fits(shape, value)) {
      throw new WireError(`the kernel sent ${where} that is not a ${shape}: ${shown(value)}`);
    }
    return value;
  }
  if ('list' in shape) {
    if (!Array.isArray(value)) {
      throw new WireError(`the kernel sent ${where} that is not a list: ${shown(value)}`);
    }
    return value.map((item, index) => checked(shape.list, item, `${where}[${index}]`));
  }
  if ('map' in shape) {
    if (!isFields(value)) {
      throw new WireError(`the kernel sent ${where} that is not an object: ${shown(value)}`);
    }
    const entries = Object.entries(value).map(([name, item]) => [name, checked(shape.map, item, `${where}.${name}`)]);
    return Object.fromEntries(entries);
  }
  if ('object' in shape) {
    return objectOf(shape.object, value, where);
  }
  return oneOf(shape.any, value, where);
}

function oneOf(shapes: readonly Shape[], value: unknown, where: string): unknown {
  for (const shape of shapes) {
    const found = typeof shape === 'string' ? fits(shape, value) : mayBe(shape, value);
    if (found) {
      return checked(shape, value, where);
    }
  }
  throw new WireError(`the kernel sent ${where} of a type that it does not have: ${shown(value)}`);
}

function fits(shape: string, value: unknown): boolean {
  switch (shape) {
    case 'null':
      return value === null;
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) && Math.abs(value) <= WHOLE_MAX;
    default:
      return typeof value === shape;
  }
}

function mayBe(shape: Exclude<Shape, string>, value: unknown): boolean {
  return 'list' in shape ? Array.isArray(value) : isFields(value);
}

/** The beginning of a value, for an error. */
function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
