package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// eventTimeout is how long the last events are waited for after the last write.
const eventTimeout = 30 * time.Second

// shootEvent is what a gardenlet-like client reads of an event.
type shootEvent struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			SeedName string `json:"seedName"`
		} `json:"spec"`
		Status struct {
			LastOperation struct {
				Description string `json:"description"`
			} `json:"lastOperation"`
		} `json:"status"`
	} `json:"object"`
}

// fanOut are the clients that watch the Shoots of a Seed each.
type fanOut struct {
	mutex sync.Mutex
	// sent are the times of writes by their marker, latencies those from the write's beginning to its event.
	sent      map[string]time.Time
	latencies []time.Duration
	err       error
	changed   chan struct{}
}

// measureWatches connects a client for every Seed and writes to Shoots: at a steady pace, then as fast as possible.
func (b *gardenBench) measureWatches(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	f := &fanOut{sent: map[string]time.Time{}, changed: make(chan struct{}, 1)}
	list := &gardencorev1beta1.ShootList{}
	if err := b.Client.List(ctx, list, client.Limit(1)); err != nil {
		return err
	}
	if err := inParallel(ctx, gardenSeeds, func(_ context.Context, number int) error {
		return b.watch(watching, f, benchSeedName(number), list.ResourceVersion)
	}); err != nil {
		return err
	}
	if err := b.measureLatency(ctx, f); err != nil {
		return err
	}
	return b.measureUpdates(ctx, f)
}

// watch connects as the gardenlet of a Seed; events are read in the background.
func (b *gardenBench) watch(ctx context.Context, f *fanOut, seed, version string) error {
	config, err := b.ConfigFor(b.Config.Host, gardencorev1beta1.SeedUserNamePrefix+seed, gardencorev1beta1.SeedsGroup)
	if err != nil {
		return err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	body, err := openShoots(ctx, httpClient, config.Host, url.Values{
		"watch": {"true"}, "resourceVersion": {version}, "fieldSelector": {"spec.seedName=" + seed},
	})
	if err != nil {
		return err
	}
	go func() {
		defer body.Close()
		for decoder := json.NewDecoder(body); ctx.Err() == nil; {
			event := shootEvent{}
			if err := decoder.Decode(&event); err != nil {
				f.fail(ctx, fmt.Errorf("watch of %s: %w", seed, err))
				return
			}
			f.receive(ctx, seed, event)
		}
	}()
	return nil
}

// receive notes an event, and that it came to the gardenlet it is for.
func (f *fanOut) receive(ctx context.Context, seed string, event shootEvent) {
	now := time.Now()
	if event.Type != "MODIFIED" || event.Object.Spec.SeedName != seed {
		f.fail(ctx, fmt.Errorf("the gardenlet of %s was told %s of Shoot %s of %s", seed, event.Type,
			event.Object.Metadata.Name, event.Object.Spec.SeedName))
		return
	}
	f.mutex.Lock()
	marker := event.Object.Status.LastOperation.Description
	if start, ok := f.sent[marker]; ok {
		f.latencies = append(f.latencies, now.Sub(start))
		delete(f.sent, marker)
	}
	f.mutex.Unlock()
	f.signal()
}

func (f *fanOut) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	f.mutex.Lock()
	f.err = err
	f.mutex.Unlock()
	f.signal()
}

func (f *fanOut) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// await waits until every write has been told to its gardenlet, and returns the sorted latencies.
func (f *fanOut) await(ctx context.Context) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		f.mutex.Lock()
		missing, err, latencies := len(f.sent), f.err, f.latencies
		if missing == 0 {
			f.latencies = nil
		}
		f.mutex.Unlock()
		if err != nil {
			return nil, err
		}
		if missing == 0 {
			slices.Sort(latencies)
			return latencies, nil
		}
		select {
		case <-f.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d writes were told to nobody: %w", missing, ctx.Err())
		}
	}
}

// update writes the status of a Shoot, with a marker by which its event is known.
func (b *gardenBench) update(ctx context.Context, f *fanOut, marker, shoot int) error {
	text := strconv.Itoa(marker)
	object := benchShootOf(shoot)
	f.mutex.Lock()
	f.sent[text] = time.Now()
	f.mutex.Unlock()
	return b.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, benchStatus(text)))
}

func (b *gardenBench) measureLatency(ctx context.Context, f *fanOut) error {
	ticker := time.NewTicker(gardenPace)
	defer ticker.Stop()
	err := inParallel(ctx, gardenPaced, func(ctx context.Context, number int) error {
		select {
		case <-ticker.C:
			return b.update(ctx, f, number, number)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	latencies, err := f.await(ctx)
	if err != nil {
		return err
	}
	how :=
		fmt.Sprintf("%d status patches, %d per s, %d gardenlets watching their own Shoots; from before the write, "+
			"with the read of the event", gardenPaced, time.Second/gardenPace, gardenSeeds)
	b.add(figureLatency50, quantile(latencies, 50), "ms", how)
	b.add(figureLatency99, quantile(latencies, 99), "ms", how)
	return nil
}

// quantile of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, percent int) float64 {
	at := min(len(sorted)*percent/100, len(sorted)-1)
	return float64(sorted[at].Microseconds()) / 1000
}

func (b *gardenBench) measureUpdates(ctx context.Context, f *fanOut) error {
	rate, cpu, err := b.rate(ctx, gardenUpdates, func(ctx context.Context, number int) error {
		return b.update(ctx, f, gardenPaced+number, number)
	})
	if err != nil {
		return err
	}
	if _, err := f.await(ctx); err != nil {
		return err
	}
	b.add(figureUpdate, rate, "per s",
		fmt.Sprintf("%d status patches by %d clients while %d gardenlets watch; every event came to its gardenlet, "+
			"and to no other; garden-apiserver takes %.1f ms of CPU for each",
			gardenUpdates, gardenClients, gardenSeeds, cpu))
	return nil
}
