package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"time"
)

// The figures of many control planes.
const (
	figureDensity       = "control planes on one machine, all healthy"
	figureDensityMemory = "control planes on one machine: memory of each"
	figureDensityCPU    = "control planes on one machine: idle CPU of each"
	figureDensityFirst  = "control planes on one machine: `kubectl apply` of the first ones → healthy"
	figureDensityLast   = "control planes on one machine: `kubectl apply` of the last ones → healthy"
)

const (
	densityTimeout = 3 * time.Hour
	// settling is how long all may take to become healthy once no more are created.
	settling = 5 * time.Minute
	// deleting is how long it may take to delete all.
	deleting = 40 * time.Minute
)

// densitySettings say how many shoots are created.
type densitySettings struct {
	// most shoots are created, batch at a time, each batch within patience.
	most, batch int
	patience    time.Duration
	// spareGiB of the machine's memory are left. With half of that, the batch that takes it is given up.
	spareGiB float64
}

func (s *densitySettings) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&s.most, "density-count", 40, "density: shoots to create at most")
	flags.IntVar(&s.batch, "density-batch", 3, "density: shoots to create at a time")
	flags.DurationVar(&s.patience, "density-patience", 10*time.Minute,
		"density: time in which a batch has to be healthy; otherwise it is given up, and the machine full")
	flags.Float64Var(&s.spareGiB, "density-spare", 2,
		"density: GiB of available memory below which no more shoots are created")
}

func (s *densitySettings) validate() error {
	if s.most < 1 || s.batch < 1 || s.patience <= 0 || s.spareGiB < 0 {
		return errors.New("--density-count, --density-batch and --density-patience must be positive, and " +
			"--density-spare not negative")
	}
	return nil
}

// next says how many shoots come next, and why none if it is zero.
func (s *densitySettings) next(created int, availableGiB float64) (count int, full string) {
	switch {
	case created >= s.most:
		return 0, fmt.Sprintf("no more than %d were wanted", s.most)
	case availableGiB < s.spareGiB:
		return 0, fmt.Sprintf("less than %s GiB of memory were available", number(s.spareGiB))
	}
	return min(s.batch, s.most-created), ""
}

// density is what has come of it.
type density struct {
	landscape
	settings densitySettings
	// names of the shoots that were healthy, and how long the first and the last batch took.
	names       []string
	first, last time.Duration
	// full is why there are no more.
	full string
}

// measure creates shoots without workers until the machine is full, looks at all of them, and deletes them.
func (s *densitySettings) measure(ctx context.Context, l landscape) ([]measurement, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, densityTimeout)
	defer cancel()
	if err := l.run(ctx, "up"); err != nil {
		return nil, err
	}
	d := density{landscape: l, settings: *s}
	if err := d.create(ctx); err != nil {
		return nil, err
	}
	if err := d.waitHealthy(ctx, settling, ""); err != nil {
		return nil, fmt.Errorf("%d shoots in the end: %w", len(d.names), err)
	}
	namespaces := make([]string, 0, len(d.names))
	for _, name := range d.names {
		namespaces = append(namespaces, technicalNamespace(name))
	}
	memory, cpu, err := d.usage(ctx, namespaces...)
	if err != nil {
		return nil, err
	}
	// What is told of was healthy before and after it was looked at.
	if err := d.waitHealthy(ctx, time.Minute, ""); err != nil {
		return nil, fmt.Errorf("%d idle shoots: %w", len(d.names), err)
	}
	found := d.figures(memory, cpu)
	for _, m := range found {
		fmt.Printf("  %s: %s %s\n", m.Name, number(m.Value), m.Unit)
	}
	return found, d.deleteShoots(ctx, deleting, d.names...)
}

func (d *density) figures(memory int64, cpu float64) []measurement {
	count := float64(len(d.names))
	return []measurement{
		{
			Name: figureDensity, Value: count, Unit: "shoots",
			How: fmt.Sprintf("shoots without workers, created %d at a time beside the two shoots and the fleet of a "+
				"landscape; %s. All conditions of all shoots were true when all were there, and a minute later",
				d.settings.batch, d.full),
		},
		{
			Name: figureDensityMemory, Value: float64(memory) / 1e6 / count, Unit: "MB",
			How: "PSS of all processes of the pods in the namespaces of these shoots, divided by their number",
		},
		{
			Name: figureDensityCPU, Value: cpu * 100 / count, Unit: "% of a core",
			How: fmt.Sprintf("the same processes over %s, %s after all were healthy", idlePeriod, idlePeriod),
		},
		{
			Name: figureDensityFirst, Value: d.first.Seconds(), Unit: "s",
			How: "until all Shoots of the first batch say Succeeded, and all their conditions are true",
		},
		{Name: figureDensityLast, Value: d.last.Seconds(), Unit: "s", How: "the same of the last batch"},
	}
}

// create creates batches until the machine is full.
func (d *density) create(ctx context.Context) error {
	for {
		available, err := availableGiB()
		if err != nil {
			return err
		}
		count, full := d.settings.next(len(d.names), available)
		if d.full = full; count == 0 {
			break
		}
		batch := make([]string, 0, count)
		for number := range count {
			batch = append(batch, fmt.Sprintf("dense-%d", len(d.names)+number))
		}
		took, err := d.createBatch(ctx, batch)
		if errors.As(err, new(*fullError)) {
			fmt.Printf("  %s and its batch are given up: %v\n", batch[0], err)
			d.full = fmt.Sprintf("the next %d did not become healthy", count)
			if err := d.deleteShoots(ctx, deleting, batch...); err != nil {
				return fmt.Errorf("deleting the last batch: %w", err)
			}
			break
		}
		if err != nil {
			return err
		}
		if len(d.names) == 0 {
			d.first = took
		}
		d.last = took
		d.names = append(d.names, batch...)
		fmt.Printf("  %d shoots, the last %d within %.1fs; %s GiB were available before them\n", len(d.names),
			count, took.Seconds(),
			number(available))
	}
	if len(d.names) == 0 {
		return errors.New("there was no room for a single shoot: " + d.full)
	}
	return nil
}

// fullError says that the machine takes no more.
type fullError struct{ error }

func (e *fullError) Unwrap() error { return e.error }

// createBatch creates shoots, waits until they are healthy, and returns how long that took.
func (d *density) createBatch(ctx context.Context, names []string) (time.Duration, error) {
	documents := make([]string, 0, len(names))
	for _, name := range names {
		documents = append(documents, denseShoot(name, names[0]))
	}
	start := time.Now()
	if err := d.applyShoots(ctx, strings.Join(documents, "---\n")); err != nil {
		return 0, err
	}
	batch := "batch=" + names[0]
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go d.watchMemory(waiting, cancel)
	if err := d.waitHealthy(waiting, d.settings.patience, batch); err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, &fullError{errors.Join(err, context.Cause(waiting))}
	}
	return time.Since(start), nil
}

// watchMemory cancels when half of what is to be spared is gone, too: the kernel would kill some process next.
func (d *density) watchMemory(ctx context.Context, cancel context.CancelCauseFunc) {
	for pause(ctx, time.Second) == nil {
		available, err := availableGiB()
		if err == nil && available < d.settings.spareGiB/2 {
			err = fmt.Errorf("only %s GiB of memory are available", number(available))
		}
		if err != nil {
			cancel(err)
			return
		}
	}
}

// waitHealthy waits until all shoots of a label are healthy, or all of the project.
func (d *density) waitHealthy(ctx context.Context, timeout time.Duration, selector string) error {
	return eventually(ctx, timeout, shootPause, func(ctx context.Context) error {
		shoots, err := d.listShoots(ctx, selector)
		if err != nil {
			return err
		}
		if len(shoots) == 0 {
			return fmt.Errorf("there are no shoots of %q", selector)
		}
		var all []error
		for i := range shoots {
			all = append(all, healthy(&shoots[i]))
		}
		return errors.Join(all...)
	})
}

// availableGiB is what the kernel takes for available without swapping.
func availableGiB() (float64, error) {
	kilo, err := kilobytes("/proc/meminfo", "MemAvailable")
	return kilo * 1000 / (1 << 30), err
}

// denseShoot is the manifest of a shoot without workers, which has control plane and etcds only.
func denseShoot(name, batch string) string {
	return fmt.Sprintf(`apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata:
  name: %s
  namespace: %s
  labels:
    federation.trellis.garden/join: "false"
    batch: %s
spec:
  cloudProfile:
    kind: CloudProfile
    name: local
  purpose: evaluation
  region: local
  kubernetes:
    version: %s
  provider:
    type: local
`, name, demoNamespace, batch, newerVersion)
}
