import { describe, expect, it } from 'vitest';
import { EventParser, type ServerEvent } from '../src/lib/api';
import { bytes, count, duration, retention, shell, short } from '../src/lib/format';
import { parse } from '../src/lib/router.svelte';

describe('numbers', () => {
  it('groups digits and shortens large ones', () => {
    expect(count(1234567)).toBe('1,234,567');
    expect(count(null)).toBe('–');
    expect(short(25000)).toBe('25.0 k');
    expect(bytes(1536)).toBe('1.5 KiB');
    expect(bytes(-1)).toBe('–');
  });
  it('shows durations with about two digits', () => {
    expect(duration(900)).toBe('900 ms');
    expect(duration(61_000)).toBe('61 s');
    expect(duration(7_200_000)).toBe('2 h');
    expect(retention(-1)).toBe('forever');
  });
});

describe('commands', () => {
  it('quotes what a shell would interpret', () => {
    expect(shell('orders.v1')).toBe('orders.v1');
    expect(shell('a b; rm -rf /')).toBe("'a b; rm -rf /'");
    expect(shell("it's")).toBe(`'it'\\''s'`);
  });
});

describe('addresses', () => {
  it('reads cluster, page, name and tab', () => {
    expect(parse('/c/local/topics/a%2Fb/config', '?q=1')).toMatchObject({ cluster: 'local', page: 'topics', name: 'a/b', tab: 'config' });
    expect(parse('/', '')).toMatchObject({ cluster: '', page: 'overview' });
  });
});

describe('server-sent events', () => {
  it('joins events that arrive in pieces', () => {
    const seen: ServerEvent[] = [];
    const parser = new EventParser((event) => seen.push(event));
    parser.feed('event: records\nda');
    parser.feed('ta: [1]\n\n: keep\n\nevent: done\ndata: {}\n\n');
    expect(seen).toEqual([{ event: 'records', data: [1] }, { event: 'done', data: {} }]);
  });
});
