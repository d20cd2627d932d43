// An operator's day: how the garden is, what a seed has, and how one comes to what one looks for.
import { test } from 'node:test';

import { kubectl } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, withVisitors } from './visitor.ts';

useBrowser();

test('an operator sees how the garden is, and comes to a shoot by the keyboard', () =>
  withVisitors(1, async (operator) => {
    const { page } = operator;
    await operator.loggedIn('operator');
    const seed = (await kubectl('garden', 'get', 'seeds', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'The garden' }).click();
    await operator.section('Shoots by state').getByRole('listitem').first().waitFor();
    await look(operator, 'garden');
    for (const tab of ['Managed seeds', 'Extensions', 'Expiring', 'Backups']) {
      await page.getByRole('tab', { name: tab, exact: true }).click();
      await page.getByRole('tabpanel', { name: tab, exact: true }).waitFor();
      await look(operator, `garden-${tab.toLowerCase().replaceAll(' ', '-')}`);
    }
    await page.getByRole('tab', { name: 'Seeds', exact: true }).click();
    await page.getByRole('table', { name: 'Seeds' }).getByRole('link', { name: seed, exact: true }).waitFor();
    await look(operator, 'garden-seeds');
    await page.getByRole('table', { name: 'Seeds' }).getByRole('link', { name: seed, exact: true }).click();
    await operator.heading(`Seed ${seed}`).waitFor();
    await operator.section('Shoots').getByRole('link', { name: 'member1', exact: true }).waitFor();
    await look(operator, 'seed');
    await operator.confirm(operator.section('Actions').getByRole('button', { name: 'Reconcile', exact: true }), 'Reconcile');
    await page.keyboard.press('Control+k');
    const search = page.getByRole('combobox', { name: 'Search over all' });
    await search.fill('member2');
    await page.getByRole('option').filter({ hasText: 'garden-demo' }).first().waitFor();
    await look(operator, 'search');
    await search.press('Enter');
    await operator.heading('member2').waitFor();
    await operator.visit('/shoots?q=member');
    await page.getByText('shoots match the filter').waitFor();
    await look(operator, 'all-shoots');
  }));
