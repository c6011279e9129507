import { LabIcon } from '@jupyterlab/ui-components';

/** Two streams that become one. */
export const streamIcon = new LabIcon({
  name: 'workbench:stream',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="0 0 24 24">
  <g class="jp-icon3 jp-icon-selectable" fill="#616161">
    <circle cx="4.5" cy="6" r="2.5"/>
    <circle cx="4.5" cy="18" r="2.5"/>
    <circle cx="19.5" cy="12" r="2.5"/>
    <path d="M4 5h4c3.2 0 4 1.7 5 3.6.9 1.6 1.5 2.4 3.500 2.4H19v2h-2.500c-3 0-4.200-1.600-5.200-3.400C10.400 8 10 7 8 7H4z"/>
    <path d="M4 19h4c3.200 0 4-1.700 5-3.600.9-1.600 1.500-2.400 3.500-2.400H19v-2h-2.500c-3 0-4.200 1.600-5.200 3.400C10.400 16 10 17 8 17H4z"/>
  </g>
</svg>`
});

/** A panel with a rising line. */
export const dashboardIcon = new LabIcon({
  name: 'workbench:dashboard',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 24 24">
  <path class="jp-icon3 jp-icon-selectable" fill="#616161" d="M3 3h2v16h16v2H3zm4.300 11.300 4-5 3.500 3L19.200 6l1.600 1.200-5.700 7.600-3.500-3-2.700 3.500z"/>
</svg>`
});
