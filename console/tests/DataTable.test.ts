import { cleanup, fireEvent, render, screen } from '@testing-library/svelte';
import { createRawSnippet } from 'svelte';
import { afterEach, describe, expect, it } from 'vitest';
import DataTable from '../src/components/DataTable.svelte';
import Findings from '../src/components/Findings.svelte';

afterEach(cleanup);

interface Row { name: string; size: number }
const rows: Row[] = Array.from({ length: 10_000 }, (_, index) => ({ name: `t${index}`, size: index % 7 }));
const columns = [
  { key: 'name', title: 'Name', sort: (row: Row) => row.name },
  { key: 'size', title: 'Size', num: true, sort: (row: Row) => row.size },
];
const cell = createRawSnippet((row: () => Row, column: () => string) => ({
  render: () => '<span></span>',
  setup: (node) => { node.textContent = String(row()[column() as keyof Row]); },
}));

describe('DataTable', () => {
  it('keeps only the rows in view in the document', () => {
    render(DataTable, { rows, columns, cell, key: (row: Row) => row.name, label: 'Rows' } as never);
    expect(document.querySelectorAll('tbody tr').length).toBeLessThan(100);
  });
  it('sorts by a column, and says so', async () => {
    render(DataTable, { rows, columns, cell, key: (row: Row) => row.name, label: 'Rows' } as never);
    await fireEvent.click(screen.getByText('Size'));
    expect(document.querySelector('th[aria-sort]')?.getAttribute('aria-sort')).toBe('descending');
    expect(document.querySelector('tbody td:last-child')?.textContent).toBe('6');
  });
});

describe('Findings', () => {
  it('shows markup as text', () => {
    const finding = { kind: 'x', severity: 'bad', about: '<script>alert(1)</script>', what: 'w', evidence: 'e', mend: 'm' };
    render(Findings, { findings: [finding] });
    expect(screen.getByText('<script>alert(1)</script>')).toBeTruthy();
    expect(document.querySelector('script')).toBeNull();
  });
});
