// The chaos program takes the processors from landscapes and says what became of them. Run it with `make chaos` on an
// otherwise idle machine, as root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// burnCommand has this program take a processor until it is ended.
const burnCommand = "burn"

func main() {
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "Usage: chaos [--duration 10m] [--landscapes 2] [--recovery 1m]\n\n"+
			"Starts landscapes, has busy loops take all processors for the duration, and fails if a container was\n"+
			"ended meanwhile that was only slow, or if something is not healthy when the recovery has passed.\n\n")
		flag.PrintDefaults()
	}
	var o options
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long the processors are taken")
	flag.DurationVar(&o.recovery, "recovery", time.Minute, "when all has to be healthy again after that")
	flag.IntVar(&o.landscapes, "landscapes", 2, "how many landscapes run side by side")
	flag.IntVar(&o.perProcessor, "per-processor", 4, "busy loops for each processor, as compilers are")
	flag.Parse()
	if flag.Arg(0) == burnCommand {
		burn()
	}
	if err := o.validate(flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "chaos: %v; see chaos --help\n", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := overload(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// burn takes a processor.
func burn() {
	for n := uint64(1); n > 0; n++ {
	}
}

// options of an overload.
type options struct {
	duration, recovery       time.Duration
	landscapes, perProcessor int
}

func (o options) validate(arguments []string) error {
	switch {
	case len(arguments) > 0:
		return fmt.Errorf("there are flags only, not %q", arguments[0])
	case o.duration <= 0:
		return fmt.Errorf("--duration is %s, and has to be more than nothing", o.duration)
	case o.recovery <= 0:
		return fmt.Errorf("--recovery is %s, and has to be more than nothing", o.recovery)
	case o.landscapes < 1:
		return fmt.Errorf("--landscapes is %d, and has to be 1 or more", o.landscapes)
	case o.perProcessor < 1:
		return fmt.Errorf("--per-processor is %d, and has to be 1 or more", o.perProcessor)
	}
	return nil
}

// overload starts landscapes, takes the processors, and looks what it did to them.
func overload(ctx context.Context, o options) (err error) {
	var all []landscape
	for i := range o.landscapes {
		all = append(all, landscape{name: fmt.Sprintf("chaos-%d", i+1)})
	}
	defer func() {
		for _, l := range all {
			err = errors.Join(err, l.run(context.WithoutCancel(ctx), "down"))
		}
	}()
	for _, l := range all {
		if err := l.run(ctx, "up"); err != nil {
			return err
		}
	}
	for _, l := range all {
		if err := l.waitHealthy(ctx, 10*time.Minute); err != nil {
			return err
		}
	}
	before, err := countRestarts(ctx, all)
	if err != nil {
		return err
	}
	fmt.Printf("%d busy loops for each processor, for %s\n", o.perProcessor, o.duration)
	if err := load(ctx, o); err != nil {
		return err
	}
	fmt.Printf("the load is gone; all has to be healthy within %s\n", o.recovery)
	return errors.Join(recovered(ctx, all, o.recovery), compare(ctx, all, before))
}

// recovered waits until all landscapes are healthy, and says which are not.
func recovered(ctx context.Context, all []landscape, within time.Duration) error {
	var errs []error
	begin := time.Now()
	for _, l := range all {
		err := l.waitHealthy(ctx, max(0, within-time.Since(begin)))
		if err == nil {
			fmt.Printf("%s: healthy %s after the load\n", l.name, time.Since(begin).Round(time.Second))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// compare says which containers have been started again since before.
func compare(ctx context.Context, all []landscape, before restarts) error {
	after, err := countRestarts(ctx, all)
	if err != nil {
		return err
	}
	fmt.Printf("%d containers before, %d after\n", len(before), len(after))
	if again := after.since(before); len(again) > 0 {
		return fmt.Errorf("%d containers were started again:\n  %s", len(again), strings.Join(again, "\n  "))
	}
	return nil
}
