// Numbers, sizes, durations and times as people read them.

const grouped = new Intl.NumberFormat('en-US');

export function count(value: number | null | undefined): string {
  return value == null ? '–' : grouped.format(value);
}
export function short(value: number | null | undefined): string {
  if (value == null) return '–';
  for (const [unit, size] of [['G', 1e9], ['M', 1e6], ['k', 1e3]] as const) {
    if (Math.abs(value) >= size * 10) return `${(value / size).toFixed(1)} ${unit}`;
  }
  return grouped.format(Math.round(value * 10) / 10);
}
export function bytes(value: number | null | undefined): string {
  if (value == null || value < 0) return '–';
  let amount = value;
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (amount < 1024 || unit === 'TiB') return `${unit === 'B' ? amount : amount.toFixed(1)} ${unit}`;
    amount /= 1024;
  }
  return '';
}
export function rate(value: number | null | undefined): string {
  return value == null ? '–' : `${short(value)}/s`;
}
export function duration(ms: number | null | undefined): string {
  if (ms == null) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
export function retention(ms: number | null | undefined): string {
  if (ms == null) return '–';
  return ms < 0 ? 'forever' : duration(ms);
}
const two = (n: number, width = 2) => String(n).padStart(width, '0');
export function clock(ms: number): string {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
export function moment(ms: number): string {
  if (ms < 0) return '–';
  const at = new Date(ms);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}.${two(at.getMilliseconds(), 3)}`;
}
export function plural(number: number, noun: string): string {
  return `${grouped.format(number)} ${noun}${number === 1 ? '' : 's'}`;
}
/** A word of a shell command, quoted if it must be. */
export function shell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
