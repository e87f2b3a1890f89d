import type { Attributes, SpanKind } from '@opentelemetry/api';
import { runningVersion } from '../config/version.ts';

/** Where spans go. The standard variables of OpenTelemetry say where that is, and which are kept. */
export interface Traces {
  /** Begins a span, below that of a caller. */
  begin(name: string, kind: keyof typeof SpanKind, traceparent?: string): TracedSpan;
  /** Sends what was not sent yet. @throws when the collector does not take it */
  stop(): Promise<void>;
}

export interface TracedSpan {
  /** For what it asks others to do: `00-…-…-01`. */
  readonly traceparent: string | undefined;
  /** Ends now. */
  end(what: { readonly name?: string; readonly attributes: Attributes; readonly failed: boolean }): void;
}

/** Loads OpenTelemetry, which takes a tenth of a second and is not needed otherwise; undefined where it is off. */
export async function openTraces({ tracing }: { readonly tracing: boolean }): Promise<Traces | undefined> {
  if (!tracing) return undefined;
  const [api, { W3CTraceContextPropagator }, resources, sdk, { OTLPTraceExporter }] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/core'),
    import('@opentelemetry/resources'),
    import('@opentelemetry/sdk-trace-base'),
    import('@opentelemetry/exporter-trace-otlp-http'),
  ]);
  const { version } = runningVersion();
  const own = resources.resourceFromAttributes({ 'service.name': 'adtally', 'service.version': version });
  const given = resources.detectResources({ detectors: [resources.envDetector] });
  const provider = new sdk.BasicTracerProvider({
    resource: own.merge(given),
    spanProcessors: [new sdk.BatchSpanProcessor(new OTLPTraceExporter())],
  });
  const tracer = provider.getTracer('adtally', version);
  const propagator = new W3CTraceContextPropagator();
  return {
    begin(name, kind, traceparent) {
      const parent = propagator.extract(api.ROOT_CONTEXT, { traceparent }, api.defaultTextMapGetter);
      const span = tracer.startSpan(name, { kind: api.SpanKind[kind] }, parent);
      const carrier: { traceparent?: string } = {};
      propagator.inject(api.trace.setSpan(parent, span), carrier, api.defaultTextMapSetter);
      return {
        traceparent: carrier.traceparent,
        end: ({ name: better, attributes, failed }) => {
          if (better) span.updateName(better);
          span.setAttributes(attributes);
          if (failed) span.setStatus({ code: api.SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    stop: () => provider.shutdown(),
  };
}
