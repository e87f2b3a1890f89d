import type uPlot from 'uplot';
import type { ChartPoint, Facts } from '../rows/protocol.ts';

/** Hatches the days whose money may still change, behind the lines. */
export function hatch(plot: uPlot, points: readonly ChartPoint[], facts: Facts, colour: string): void {
  const { ctx, bbox } = plot;
  const open = points.map(({ start, end }) =>
    facts.unconfirmed.some(([first, last]) => start <= last && end >= first),
  );
  const half = points.length > 1 ? bbox.width / (points.length - 1) / 2 : bbox.width / 2;
  ctx.save();
  ctx.beginPath();
  for (const [n, { start }] of points.entries()) {
    if (!open[n]) continue;
    const middle = plot.valToPos(Date.parse(start) / 1000, 'x', true);
    const left = Math.max(bbox.left, middle - half);
    const right = Math.min(bbox.left + bbox.width, middle + half);
    ctx.rect(left, bbox.top, right - left, bbox.height);
  }
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  const step = 7 * devicePixelRatio;
  for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += step) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}
