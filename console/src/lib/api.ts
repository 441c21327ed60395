// Requests to the console's own API. Changes carry the CSRF token; errors become ApiError with the server's message.

export interface ClusterInfo { name: string; color: string; servers: string; registry: boolean }
export interface Session {
  version: string; user: string | null; login_required: boolean; read_only: boolean; csrf_token: string;
  clusters: ClusterInfo[];
}

export class ApiError extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

let token = '';

async function answer<T>(response: Response): Promise<T> {
  const text = await response.text();
  let body: unknown;
  try { body = text ? JSON.parse(text) : {}; } catch { body = { message: text.slice(0, 300) }; }
  if (!response.ok) {
    const message = (body as { message?: string }).message ?? `HTTP ${response.status}`;
    throw new ApiError(response.status, message);
  }
  return body as T;
}

async function send<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = {};
  if (method !== 'GET') headers['X-Csrf-Token'] = token;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const init: RequestInit = { method, headers, credentials: 'same-origin' };
  if (body !== undefined) init.body = JSON.stringify(body);
  if (signal) init.signal = signal;
  let response: Response;
  try {
    response = await fetch(`/api${path}`, init);
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error;
    throw new ApiError(0, 'the console does not answer; is `barnabas up` running?');
  }
  return answer<T>(response);
}

export const get = <T>(path: string, signal?: AbortSignal) => send<T>('GET', path, undefined, signal);
export const post = <T>(path: string, body: unknown = {}) => send<T>('POST', path, body);
export const patch = <T>(path: string, body: unknown) => send<T>('PATCH', path, body);
export const put = <T>(path: string, body: unknown) => send<T>('PUT', path, body);
export const remove = <T>(path: string) => send<T>('DELETE', path);

export async function openSession(): Promise<Session> {
  return kept(await get<Session>('/session'));
}
export async function logIn(username: string, password: string, cluster: string): Promise<Session> {
  return kept(await post<Session>('/session', { username, password, cluster }));
}
function kept(session: Session): Session {
  token = session.csrf_token;
  return session;
}

export interface ServerEvent { event: string; data: unknown }

/** Server-sent events of a GET request, until it ends or the signal aborts it. */
export async function stream(path: string, signal: AbortSignal, onEvent: (event: ServerEvent) => void): Promise<void> {
  const response = await fetch(`/api${path}`, { signal, credentials: 'same-origin' });
  if (!response.ok || !response.body) { await answer(response); return; }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser(onEvent);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    parser.feed(value);
  }
}

export class EventParser {
  private rest = '';
  constructor(private readonly onEvent: (event: ServerEvent) => void) {}
  feed(text: string): void {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop() ?? '';
    for (const block of blocks) {
      let event = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        if (line.startsWith('event: ')) event = line.slice(7);
        else if (line.startsWith('data: ')) data.push(line.slice(6));
      }
      if (data.length) this.onEvent({ event, data: JSON.parse(data.join('\n')) });
    }
  }
}

export const seg = encodeURIComponent;
