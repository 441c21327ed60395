// What jsdom does not have: elements there have no size, so nothing is ever observed.
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
