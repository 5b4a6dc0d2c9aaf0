// OpenTelemetry Collector's OTLP receiver on the address of the first argument. Prints each export as a line of OTLP's JSON.
package main

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func print(_ context.Context, metrics pmetric.Metrics) error {
	text, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(metrics)
	fmt.Println(string(text))
	return err
}

func main() {
	factory := otlpreceiver.NewFactory()
	settings := factory.CreateDefaultConfig()
	http := map[string]any{"http": map[string]any{"endpoint": os.Args[1]}}
	check(confmap.NewFromStringMap(map[string]any{"protocols": http}).Unmarshal(settings))
	sink, err := consumer.NewMetrics(print)
	check(err)
	ctx := context.Background()
	receiver, err := factory.CreateMetrics(ctx, receivertest.NewNopSettings(factory.Type()), settings, sink)
	check(err)
	check(receiver.Start(ctx, componenttest.NewNopHost()))
	os.Stdin.Read(make([]byte, 1))
}
