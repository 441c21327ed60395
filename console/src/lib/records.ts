// Records as the API gives them, JSON paths into values, and the code that does the same elsewhere.

import { shell } from './format';

export interface Side { text: string; cut: boolean; bytes: number; form: string; schema: number | null; error: string | null; why: string }
export interface Rec { partition: number; offset: number; timestamp: number; key: Side | null; value: Side | null; headers: [string, string | null][] }
export interface WholeRec extends Rec { raw_key: string | null; raw_value: string | null }

export const QUERY_NAMES = ['start', 'end', 'partition', 'key', 'header', 'contains', 'where', 'decode_key', 'decode', 'limit', 'committed'] as const;
export type Query = Partial<Record<(typeof QUERY_NAMES)[number], string>>;

/** The member of a JSON text at a path such as `items.0.sku`; undefined if there is none. */
export function member(text: string, path: string): string | undefined {
  let value: unknown;
  try { value = JSON.parse(text); } catch { return undefined; }
  for (const name of path.split('.').filter(Boolean)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}

export function pretty(text: string, form: string): string {
  if (form === 'string' || form === 'hex' || form === 'base64') return text;
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

/** Bytes of base64 as rows of offset, hexadecimal and characters. */
export function hexdump(base64: string, rowsMax = 4096): string {
  const data = Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  const lines: string[] = [];
  for (let at = 0; at < data.length && lines.length < rowsMax; at += 16) {
    const row = [...data.slice(at, at + 16)];
    const hex = row.map((each) => each.toString(16).padStart(2, '0')).join(' ').padEnd(47);
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hex}  ${row.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : '.')).join('')}`);
  }
  return lines.join('\n');
}

/** The command line that reads the same records. */
export function consumeCommand(topic: string, query: Query, servers = ''): string {
  const words = ['barnabas consume', shell(topic)];
  const start = query.start ?? 'newest';
  words.push('-o', shell(start === 'newest' ? `end-${query.limit ?? 100}` : start));
  for (const each of (query.partition ?? '').split(',').filter(Boolean)) words.push('-p', each);
  if (query.key) words.push('--key', shell(query.key));
  if (query.header) words.push('-H', shell(query.header));
  if (query.contains) words.push('--grep', shell(query.contains));
  if (query.where) words.push('--filter', shell(query.where));
  if (query.committed) words.push('--read-committed');
  words.push('--decode', query.decode ?? 'auto', '--json', '--exit');
  if (servers) words.push('-b', servers);
  return words.join(' ');
}

export function pythonCode(topic: string, rec: Rec, servers: string): string {
  return `import barnabas
from barnabas import Start

table = barnabas.read(
    ${JSON.stringify(topic)},
    bootstrap_servers=${JSON.stringify(servers)},
    start={${rec.partition}: Start.at(${rec.offset})},
    end={${rec.partition}: Start.at(${rec.offset + 1})},
)
print(table.to_pylist())`;
}

export function sparkCode(topic: string, rec: Rec, servers: string): string {
  const at = (offset: number) => JSON.stringify(JSON.stringify({ [topic]: { [rec.partition]: offset } }));
  return `from barnabas.spark import session

spark = session()
rows = (
    spark.read.format("barnabas")
    .option("kafka.bootstrap.servers", ${JSON.stringify(servers)})
    .option("assign", ${JSON.stringify(JSON.stringify({ [topic]: [rec.partition] }))})
    .option("startingOffsets", ${at(rec.offset)})
    .option("endingOffsets", ${at(rec.offset + 1)})
    .load()
)
rows.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").show(truncate=False)`;
}
