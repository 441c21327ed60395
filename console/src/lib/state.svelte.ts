// What all pages share: the session, the theme, notices, and data that is loaded again and again.

import { ApiError, get, openSession, type Session } from './api';
import { onDestroy } from 'svelte';

export const app = $state({
  session: null as Session | null,
  failure: '',
  theme: (localStorage.getItem('theme') ?? (globalThis.matchMedia?.('(prefers-color-scheme: light)').matches ? 'light' : 'dark')) as string,
  notices: [] as { id: number; text: string; kind: string }[],
});

export async function start(): Promise<void> {
  try {
    app.session = await openSession();
    app.failure = '';
  } catch (error) {
    app.failure = (error as Error).message;
  }
}

export function setTheme(theme: string): void {
  app.theme = theme;
  localStorage.setItem('theme', theme);
  document.documentElement.dataset.theme = theme;
}

let notices = 0;
export function notify(text: string, kind = 'good'): void {
  const id = ++notices;
  app.notices.push({ id, text, kind });
  setTimeout(() => { app.notices = app.notices.filter((each) => each.id !== id); }, kind === 'bad' ? 9000 : 4000);
}

/** Loads a path now and every few seconds while the page is visible; `data` stays while it is loaded again. */
export class Live<T> {
  data = $state.raw<T | null>(null);
  error = $state('');
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | undefined;
  private stopped = false;

  constructor(private readonly path: () => string | null, private readonly everyMs = 5000) {
    $effect(() => {
      const wanted = this.path();
      this.data = null;
      this.error = '';
      if (wanted) void this.load();
      return () => { clearTimeout(this.timer); this.abort?.abort(); };
    });
    onDestroy(() => { this.stopped = true; clearTimeout(this.timer); this.abort?.abort(); });
  }

  load = async (): Promise<void> => {
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const path = this.path();
    if (!path || this.stopped) return;
    try {
      if (!document.hidden || this.data === null) {
        this.data = await get<T>(path, abort.signal);
        this.error = '';
      }
    } catch (error) {
      if (abort.signal.aborted) return;
      this.error = (error as Error).message;
      if (error instanceof ApiError && error.status === 401) void start();
    }
    if (this.everyMs > 0 && !abort.signal.aborted && !this.stopped) this.timer = setTimeout(() => void this.load(), this.everyMs);
  };
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify('Copied');
  } catch {
    notify('The browser does not allow copying from this page', 'bad');
  }
}
