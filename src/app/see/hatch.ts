import type uPlot from 'uplot';
import type { ChartPoint, Facts } from '../rows/protocol.ts';
import { isOpen } from './chart-words.ts';

/** Hatches the days whose money may still change, behind the lines. */
export function hatch(plot: uPlot, points: readonly ChartPoint[], facts: Facts, colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  for (const [n, point] of points.entries()) {
    if (!isOpen(point, facts)) continue;
    const left = plot.valToPos(n - 0.5, 'x', true);
    ctx.rect(left, bbox.top, plot.valToPos(n + 0.5, 'x', true) - left, bbox.height);
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
