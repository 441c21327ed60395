// The address bar is the state of a page: /c/CLUSTER/PAGE/NAME/TAB?QUERY.

export interface Place { cluster: string; page: string; name: string; tab: string; query: URLSearchParams }

export function parse(path: string, search: string): Place {
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  const [, cluster = '', page = 'overview', name = '', tab = ''] = parts[0] === 'c' ? parts : ['c'];
  return { cluster, page, name, tab, query: new URLSearchParams(search) };
}

let place = $state.raw(parse(location.pathname, location.search));

addEventListener('popstate', () => { place = parse(location.pathname, location.search); });

export const route = { get at(): Place { return place; } };

export function href(cluster: string, page = 'overview', name = '', tab = '', query?: Record<string, string>): string {
  let path = `/c/${encodeURIComponent(cluster)}/${page}`;
  if (name) path += `/${encodeURIComponent(name)}`;
  if (tab) path += `/${tab}`;
  const text = query ? new URLSearchParams(query).toString() : '';
  return text ? `${path}?${text}` : path;
}

export function go(path: string, replace = false): void {
  history[replace ? 'replaceState' : 'pushState'](null, '', path);
  place = parse(location.pathname, location.search);
  if (!replace) document.getElementById('main')?.scrollTo(0, 0);
}

/** Change parts of the query; an empty value removes its name. */
export function setQuery(changes: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ''), true);
}

/** Links within the application change the page without loading it again. */
export function followLinks(event: MouseEvent): void {
  const link = (event.target as Element | null)?.closest?.('a');
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.target || link.origin !== location.origin || link.hasAttribute('download') || !link.pathname.startsWith('/c/')) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
