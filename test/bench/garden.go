package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// The size of the garden that is measured.
const (
	gardenShoots   = 10000
	gardenSeeds    = 200
	gardenProjects = 20
	// gardenClients write at the same time.
	gardenClients = 20
	// gardenUpdates are written as fast as the garden takes them, gardenPaced one every gardenPace.
	gardenUpdates = 5000
	gardenPaced   = 1000
	gardenPace    = 10 * time.Millisecond
	gardenTimeout = 6 * time.Minute
)

// The figures of the garden.
const (
	figureCreate       = "garden of 10,000 Shoots and 200 Seeds: Shoots created"
	figureUpdate       = "garden of 10,000 Shoots and 200 Seeds: status updates of Shoots"
	figureListAll      = "garden of 10,000 Shoots and 200 Seeds: list of all Shoots"
	figureListSelected = "garden of 10,000 Shoots and 200 Seeds: list of a Seed's Shoots"
	figureLatency50    = "garden of 10,000 Shoots and 200 Seeds: Shoot written → its gardenlet is told, median"
	figureLatency99    = "garden of 10,000 Shoots and 200 Seeds: Shoot written → its gardenlet is told, p99"
	figureMemory       = "garden of 10,000 Shoots and 200 Seeds: memory of garden-apiserver"
	figurePeak         = "garden of 10,000 Shoots and 200 Seeds: memory of garden-apiserver, peak"
)

// profileVariable names a folder to write profiles of garden-apiserver to, for whoever wants to know where time and
// memory go.
const profileVariable = "TRELLIS_BENCH_PROFILE"

// measureGarden measures the garden's API alone, with as many objects as a large garden has: etcd, kube-apiserver and
// garden-apiserver are processes on loopback addresses, every request goes through the aggregation layer.
func measureGarden(ctx context.Context) ([]measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, gardenTimeout)
	defer cancel()
	log.SetLogger(logr.Discard())
	binary, err := environment.KubernetesBinary()
	if err != nil {
		return nil, err
	}
	env, err := environment.StartWith(ctx, environment.Options{
		Binary: binary, OwnProcesses: true, GardenAPIServerArguments: []string{"--profiling=true"},
	})
	if err != nil {
		return nil, err
	}
	defer env.Stop()
	return (&gardenBench{Environment: env}).measure(ctx)
}

// gardenBench is a garden under measurement.
type gardenBench struct {
	*environment.Environment
	found []measurement
}

func (b *gardenBench) measure(ctx context.Context) ([]measurement, error) {
	if err := b.prepare(ctx); err != nil {
		return b.found, fmt.Errorf("preparing the garden: %w", err)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"create", b.measureCreation}, {"list", b.measureLists}, {"watch", b.measureWatches},
		{"memory", b.measureMemory},
	} {
		start := time.Now()
		stopProfile := b.profile(ctx, step.name)
		err := step.do(ctx)
		stopProfile()
		if err != nil {
			return b.found, fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("  garden: %s took %.1fs\n", step.name, time.Since(start).Seconds())
	}
	return b.found, nil
}

func (b *gardenBench) add(name string, value float64, unit, how string) {
	fmt.Printf("  %s: %s %s (%s)\n", name, number(value), unit, how)
	b.found = append(b.found, measurement{Name: name, Value: value, Unit: unit, How: how})
}

// measureCreation fills the garden.
func (b *gardenBench) measureCreation(ctx context.Context) error {
	rate, cpu, err := b.rate(ctx, gardenShoots, func(ctx context.Context, number int) error {
		return b.Client.Create(ctx, benchShootOf(number))
	})
	if err != nil {
		return err
	}
	b.add(figureCreate, rate, "per s",
		fmt.Sprintf("%d Shoots that are assigned to %d Seeds, by %d clients, etcd syncing to disk; garden-apiserver "+
			"takes %.1f ms of CPU for each",
			gardenShoots, gardenSeeds, gardenClients, cpu))
	return nil
}

// rate calls do for every number below count and returns how often in a second, and how many milliseconds of CPU
// garden-apiserver took for one call.
func (b *gardenBench) rate(ctx context.Context, count int,
	do func(ctx context.Context, number int) error) (perSecond, cpu float64, err error) {
	before, err := cpuOf(b.GardenAPIServer.PID())
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	if err := inParallel(ctx, count, do); err != nil {
		return 0, 0, err
	}
	perSecond = float64(count) / time.Since(start).Seconds()
	after, err := cpuOf(b.GardenAPIServer.PID())
	return perSecond, (after - before) * 1000 / float64(count), err
}

// cpuOf returns the seconds of CPU that a process has used.
func cpuOf(pid int) (float64, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	// After the name in parentheses, which may hold anything, user and system time are the 12th and 13th field.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: its stat has %d fields", pid, len(fields))
	}
	user, errUser := strconv.ParseFloat(fields[11], 64)
	system, errSystem := strconv.ParseFloat(fields[12], 64)
	const ticksPerSecond = 100
	return (user + system) / ticksPerSecond, errors.Join(errUser, errSystem)
}

// inParallel calls do for every number below count, by gardenClients at a time.
func inParallel(ctx context.Context, count int, do func(ctx context.Context, number int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gardenClients)
	for number := range count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return do(ctx, number) })
	}
	return group.Wait()
}

// measureLists lists all Shoots, and those of one Seed.
func (b *gardenBench) measureLists(ctx context.Context) error {
	all, err := b.list(ctx, 5, func(int) url.Values { return url.Values{} })
	if err != nil {
		return err
	}
	b.add(figureListAll, all.Seconds(), "s", "median of 5 consistent lists, as JSON, until the last byte")
	selected, err := b.list(ctx, 100, func(round int) url.Values {
		return url.Values{"fieldSelector": {"spec.seedName=" + benchSeedName(round%gardenSeeds)}}
	})
	if err != nil {
		return err
	}
	b.add(figureListSelected, float64(selected.Microseconds())/1000, "ms",
		"median of 100 consistent lists with the field selector spec.seedName")
	return nil
}

// list returns the median time of a list.
func (b *gardenBench) list(ctx context.Context, rounds int, query func(round int) url.Values) (time.Duration, error) {
	client, err := rest.HTTPClientFor(b.Config)
	if err != nil {
		return 0, err
	}
	var took []float64
	for round := range rounds {
		start := time.Now()
		body, err := openShoots(ctx, client, b.Config.Host, query(round))
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, body)
		if err := orClose(err, body); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(start)))
	}
	return time.Duration(median(took)), nil
}

func orClose(err error, body io.Closer) error {
	if closing := body.Close(); err == nil {
		return closing
	}
	return err
}

// openShoots asks for Shoots of all namespaces and returns the body of the answer.
func openShoots(ctx context.Context, client *http.Client, host string, query url.Values) (io.ReadCloser, error) {
	target := host + "/apis/" + gardencorev1beta1.SchemeGroupVersion.String() + "/shoots?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		message, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return nil, fmt.Errorf("GET %s: %s: %s", target, response.Status, message)
	}
	return response.Body, nil
}

// measureMemory reads what garden-apiserver holds when all is done.
func (b *gardenBench) measureMemory(context.Context) error {
	process := filepath.Join("/proc", strconv.Itoa(b.GardenAPIServer.PID()))
	pss, err := kilobytes(filepath.Join(process, "smaps_rollup"), "Pss")
	if err != nil {
		return err
	}
	peak, err := kilobytes(filepath.Join(process, "status"), "VmHWM")
	if err != nil {
		return err
	}
	b.add(figureMemory, pss/1000, "MB", "PSS after all of the above")
	b.add(figurePeak, peak/1000, "MB", "the largest RSS in the whole measurement")
	return nil
}

// kilobytes reads a value of a file of /proc.
func kilobytes(path, name string) (float64, error) {
	value, _ := strings.CutSuffix(field(path, name), " kB")
	kib, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, path, err)
	}
	return kib * 1.024, nil
}

// profile takes a CPU profile of garden-apiserver until stop is called, and then one of its heap, when profiles are
// wanted.
func (b *gardenBench) profile(ctx context.Context, name string) (stop func()) {
	folder := os.Getenv(profileVariable)
	if folder == "" {
		return func() {}
	}
	const seconds = "8"
	done := make(chan error, 1)
	go func() {
		done <- b.saveProfile(ctx, "profile?seconds="+seconds, filepath.Join(folder, name+".cpu.pprof"))
	}()
	return func() {
		for _, err := range []error{<-done, b.saveProfile(ctx, "heap", filepath.Join(folder, name+".heap.pprof"))} {
			if err != nil {
				fmt.Println("  no profile:", err)
			}
		}
	}
}

func (b *gardenBench) saveProfile(ctx context.Context, what, path string) error {
	client, err := rest.HTTPClientFor(b.Config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.GardenAPIServerURL+"/debug/pprof/"+what, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
