// The bench program measures Trellis against the numbers it is to reach, and writes docs/benchmarks.md. Run it with
// `make bench` on an otherwise idle machine, as root; AREAS chooses what to measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/trellis-garden/trellis/test/integration/environment"
)

// rounds is how often each figure is taken; the median counts.
const rounds = 3

var (
	areas = []string{"up", "shoot", "federation", "fleet", "placement", "garden", "gateway", "fresh"}
	// usualAreas are measured when none is named.
	usualAreas = []string{"up", "shoot", "federation", "fleet", "placement", "garden", "gateway"}
)

func main() {
	environment.ServeProcess()
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "Usage: bench [AREA...]\n\nMeasures the areas %s, or those that are named, of %s,\n"+
			"and writes %s.\n", strings.Join(usualAreas, ", "), strings.Join(areas, ", "), reportFile)
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, flag.Args()) }
	if flag.Arg(0) == federationProcess {
		do = func() error { return serveFederation(ctx, flag.Arg(1)) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen []string) (err error) {
	if len(chosen) == 0 {
		chosen = usualAreas
	}
	for _, area := range chosen {
		if !slices.Contains(areas, area) {
			return fmt.Errorf("there is no area %q; the areas are %s", area, strings.Join(areas, ", "))
		}
	}
	var all []measurement
	measure := func(area string, do func() ([]measurement, error)) error {
		if !slices.Contains(chosen, area) {
			return nil
		}
		fmt.Println(area)
		found, err := do()
		all = append(all, found...)
		return err
	}
	// What was measured before a failure is kept.
	defer func() {
		if len(all) > 0 {
			err = errors.Join(err, record(all))
		}
	}()
	if err := measure("federation", func() ([]measurement, error) { return measureFederation(ctx) }); err != nil {
		return err
	}
	if err := measure("fleet", func() ([]measurement, error) { return measureFleets(ctx) }); err != nil {
		return err
	}
	if err := measure("placement", func() ([]measurement, error) { return nil, measurePlacement(ctx) }); err != nil {
		return err
	}
	if err := measure("garden", func() ([]measurement, error) { return measureGarden(ctx) }); err != nil {
		return err
	}
	if err := measure("gateway", func() ([]measurement, error) { return measureGateway(ctx) }); err != nil {
		return err
	}
	if slices.Contains(chosen, "up") || slices.Contains(chosen, "shoot") {
		defer func() { err = errors.Join(err, benchLandscape.run(context.WithoutCancel(ctx), "down")) }()
	}
	if err := measure("up", func() ([]measurement, error) { return measureUp(ctx, benchLandscape) }); err != nil {
		return err
	}
	if err := measure("shoot", func() ([]measurement, error) {
		if err := benchLandscape.run(ctx, "up"); err != nil {
			return nil, err
		}
		return measureShoots(ctx, benchLandscape)
	}); err != nil {
		return err
	}
	return measure("fresh", func() ([]measurement, error) { return measureFresh(ctx) })
}
