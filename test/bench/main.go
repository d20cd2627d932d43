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

// area is what can be measured by itself.
type area struct {
	name string
	// usual areas are measured when none is named.
	usual bool
	// onLandscape says that it needs the bench landscape, which is ended after all areas.
	onLandscape bool
	// about says what is measured, and what that needs.
	about   string
	measure func(ctx context.Context) ([]measurement, error)
}

// settings of single areas.
type settings struct {
	restore restoreSettings
	density densitySettings
}

func (s *settings) addFlags(flags *flag.FlagSet) {
	s.restore.addFlags(flags)
	s.density.addFlags(flags)
}

// areasWith returns all areas in the order in which they are measured.
func areasWith(s *settings) []area {
	onLandscape := func(name string, usual bool, about string,
		do func(context.Context, landscape) ([]measurement, error)) area {
		return area{name, usual, true, about, func(ctx context.Context) ([]measurement, error) {
			return do(ctx, benchLandscape)
		}}
	}
	return []area{
		{"federation", true, false, "decisions of the placement core", measureFederation},
		{"fleet", true, false, "fleets of simulated members", measureFleets},
		{"placement", true, false, "placement decisions beside Karmada's", measurePlacement},
		{"garden", true, false, "a garden of 10,000 Shoots", measureGarden},
		{"dashboard", true, false, "the dashboard with 5,000 Shoots and 500 browsers", measureDashboard},
		{"gateway", true, false, "a gateway that strangers attack", measureGateway},
		{
			"restore", true, false, "an etcd of 1 GB is restored, beside etcdutl; needs 8 GB of disk",
			func(ctx context.Context) ([]measurement, error) { return measureRestore(ctx, s.restore) },
		},
		onLandscape("up", true, "starts of a landscape", measureUp),
		onLandscape("shoot", true, "shoots with a worker", measureShoots),
		onLandscape("growth", true, "a shoot's control plane grows to three members of etcd", measureGrowth),
		onLandscape("density", false, "shoots without workers until the machine is full; by name only, as it takes an "+
			"hour and the machine's memory", s.density.measure),
		onLandscape("upgrade", false, "a shoot is upgraded from "+olderVersion+" to "+newerVersion+"; by name only, "+
			"as it builds a second Kubernetes and starts the landscape anew with it", measureUpgrade),
		{
			"fresh", false, false, "a first start in a new clone with empty caches; by name only, as it downloads " +
				"and builds all", measureFresh,
		},
	}
}

func main() {
	environment.ServeProcess()
	var s settings
	s.addFlags(flag.CommandLine)
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage(areasWith(&s))); flag.PrintDefaults() }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, areasWith(&s), flag.Args()) }
	if flag.Arg(0) == federationProcess {
		do = func() error { return serveFederation(ctx, flag.Arg(1)) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// usage tells of all areas.
func usage(areas []area) string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "Usage: bench [FLAG...] [AREA...]\n\nMeasures the areas that are named, or without names those "+
		"with a star, and writes %s.\n\n", reportFile)
	for _, a := range areas {
		mark := ' '
		if a.usual {
			mark = '*'
		}
		about := a.about
		if a.onLandscape {
			about += " (starts the landscape " + benchLandscape.name + ")"
		}
		fmt.Fprintf(text, "%c %-11s %s\n", mark, a.name, about)
	}
	text.WriteString("\nFlags:\n")
	return text.String()
}

// choose returns the areas of these names, or the usual ones, in the order in which they are measured.
func choose(areas []area, names []string) ([]area, error) {
	known := make([]string, 0, len(areas))
	for _, a := range areas {
		known = append(known, a.name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no area %q; the areas are %s", name, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(areas), func(a area) bool {
		return !slices.Contains(names, a.name) && (len(names) > 0 || !a.usual)
	}), nil
}

func run(ctx context.Context, areas []area, names []string) (err error) {
	chosen, err := choose(areas, names)
	if err != nil {
		return err
	}
	var all []measurement
	// What was measured before a failure is kept.
	defer func() {
		if len(all) > 0 {
			err = errors.Join(err, record(all))
		}
	}()
	if slices.ContainsFunc(chosen, func(a area) bool { return a.onLandscape }) {
		defer func() { err = errors.Join(err, benchLandscape.run(context.WithoutCancel(ctx), "down")) }()
	}
	for _, a := range chosen {
		fmt.Println(a.name)
		found, err := a.measure(ctx)
		all = append(all, found...)
		if err != nil {
			return fmt.Errorf("area %s: %w", a.name, err)
		}
	}
	return nil
}
