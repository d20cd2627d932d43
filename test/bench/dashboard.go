package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// What the dashboard is measured with.
const (
	dashboardShoots   = 5000
	dashboardBrowsers = 500
	// dashboardChanges are shown one after another.
	dashboardChanges = 100
	// dashboardSettle is how long nothing happens before memory is measured.
	dashboardSettle  = 10 * time.Second
	dashboardTimeout = 12 * time.Minute
	// browserTimeout is how long a browser waits for its list, and for a change.
	browserTimeout = 2 * time.Minute
)

// The figures of the dashboard.
const (
	withBrowsers = "dashboard, 500 browsers with a list of 5,000 Shoots each: "

	figureFirstLoad       = "dashboard: first load, compressed"
	figureFirstRows       = "dashboard, list of 5,000 Shoots: first rows"
	figureAllRows         = "dashboard, list of 5,000 Shoots: all rows"
	figureConnected       = withBrowsers + "all connect at once → all have their lists"
	figureShown50         = withBrowsers + "Shoot written → all show it, median"
	figureShown99         = withBrowsers + "Shoot written → all show it, p99"
	figureWatches         = withBrowsers + "watches in the garden's API for each"
	figureDashboardRest   = "dashboard: memory at rest"
	figureDashboardMemory = withBrowsers + "memory"
	figureDashboardPeak   = withBrowsers + "memory, peak"
)

// dashboardBench is a dashboard under measurement, in front of a garden.
type dashboardBench struct {
	*gardenBench
	dashboardServer
	process *environment.Process
	people  []person
	// others are the watches that the garden's API has without browsers.
	others float64
}

// measureDashboard measures the dashboard's server as a process of its own, in front of a garden whose API is etcd,
// kube-apiserver and garden-apiserver. Browsers are pretended: they speak as the pages do, and draw nothing.
func measureDashboard(ctx context.Context) ([]measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, dashboardTimeout)
	defer cancel()
	log.SetLogger(logr.Discard())
	binary, err := environment.KubernetesBinary()
	if err != nil {
		return nil, err
	}
	program, err := buildDashboard(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "dashboard-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	people, tokens := newPeople(dashboardBrowsers + rounds)
	tokenFile := filepath.Join(folder, "tokens.csv")
	if err := os.WriteFile(tokenFile, []byte(tokens), 0o600); err != nil {
		return nil, err
	}
	env, err := environment.StartWith(ctx, environment.Options{
		Binary: binary, OwnProcesses: true, KubeAPIServerArguments: []string{"--token-auth-file=" + tokenFile},
	})
	if err != nil {
		return nil, err
	}
	defer env.Stop()
	b := &dashboardBench{gardenBench: &gardenBench{Environment: env}, people: people}
	err = b.measure(ctx, program, folder)
	return b.found, err
}

// buildDashboard builds the program with its pages, as for a landscape, and returns its path.
func buildDashboard(ctx context.Context) (string, error) {
	shared, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	const cache = ".cache"
	err = images.BuildDashboard(ctx, images.Options{
		Root: ".", Cache: cache, Shared: filepath.Join(shared, "trellis"), Log: io.Discard,
	})
	return filepath.Join(cache, images.BinDir, "dashboard"), err
}

func (b *dashboardBench) measure(ctx context.Context, program, folder string) error {
	if err := b.fill(ctx); err != nil {
		return fmt.Errorf("filling the garden: %w", err)
	}
	if err := b.start(ctx, program, folder); err != nil {
		return fmt.Errorf("starting the dashboard: %w", err)
	}
	var browsers []*browser
	defer func() {
		for _, each := range browsers {
			each.close()
		}
	}()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"first load", b.measureFirstLoad}, {"memory at rest", b.measureRest}, {"list", b.measureList},
		{"connect", func(ctx context.Context) (err error) {
			browsers, err = b.measureConnecting(ctx)
			return err
		}},
		{"watches", b.measureWatching},
		{"change", func(ctx context.Context) error { return b.measureChanges(ctx, browsers) }},
		{"memory", b.measureBusy},
	} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("  dashboard: %s took %.1fs\n", step.name, time.Since(start).Seconds())
	}
	return nil
}

// fill creates Shoots as gardenlets leave them, and lets people see them all.
func (b *dashboardBench) fill(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return err
	}
	for _, object := range operatorAccess() {
		if err := b.Client.Create(ctx, object); err != nil {
			return fmt.Errorf("%T %s: %w", object, object.GetName(), err)
		}
	}
	return inParallel(ctx, dashboardShoots, func(ctx context.Context, number int) error {
		if err := b.Client.Create(ctx, benchShootOf(number)); err != nil {
			return err
		}
		return b.change(ctx, number, "Shoot has been reconciled.")
	})
}

// change writes the status of a Shoot, with a text that its row shows.
func (b *dashboardBench) change(ctx context.Context, shoot int, text string) error {
	return b.Client.Status().Patch(ctx, benchShootOf(shoot), client.RawPatch(types.MergePatchType, benchStatus(text)))
}

// operatorAccess lets people read all of the garden's Shoots.
func operatorAccess() []client.Object {
	const name = "bench:people"
	return []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{gardencorev1beta1.SchemeGroupVersion.Group}, Resources: []string{"shoots"},
			Verbs: []string{"get", "list", "watch"},
		}}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: peopleGroup}},
		},
	}
}

// start runs the dashboard with the settings of its Deployment, and waits until it is ready.
func (b *dashboardBench) start(ctx context.Context, program, folder string) error {
	// Certificates of the environment serve as well.
	config, err := b.ConfigFor(b.Config.Host, "dashboard")
	if err != nil {
		return err
	}
	arguments, err := b.configure(folder, config)
	if err != nil {
		return err
	}
	// env becomes the program, with its process id.
	b.process, err = b.Run("dashboard", "/usr/bin/env", append([]string{
		"GOGC=50", "GOMEMLIMIT=256000000", program,
	}, arguments...)...)
	if err != nil {
		return err
	}
	err = eventually(ctx, environment.Patience, 50*time.Millisecond, func(ctx context.Context) error {
		_, err := b.metrics(ctx, http.DefaultClient, "http://"+b.health+"/readyz")
		return err
	})
	if err != nil {
		text, _ := b.process.Log()
		return fmt.Errorf("%w; its log:\n%s", err, text)
	}
	return nil
}

// measureFirstLoad loads what a visitor needs to see the first page.
func (b *dashboardBench) measureFirstLoad(ctx context.Context) error {
	files, err := firstFiles(pagesFolder)
	if err != nil {
		return err
	}
	total := 0
	for _, file := range files {
		size, err := b.load(ctx, file)
		if err != nil {
			return err
		}
		total += size
	}
	b.add(figureFirstLoad, float64(total)/1000, "kB", fmt.Sprintf("bodies of the %d files that a visitor's browser "+
		"gets before it shows their projects, as the server sends them", len(files)))
	return nil
}

func (b *dashboardBench) measureRest(ctx context.Context) error {
	others, err := b.watches(ctx)
	if err != nil {
		return err
	}
	b.others = others
	return b.addMemory(ctx, figureDashboardRest, "PSS after the first load, with nobody connected, and the "+
		"settings of the Deployment (GOGC 50, GOMEMLIMIT for 256 MB)")
}

// addMemory measures what the dashboard holds when nothing happens.
func (b *dashboardBench) addMemory(ctx context.Context, figure, how string) error {
	if err := pause(ctx, dashboardSettle); err != nil {
		return err
	}
	pss, err := kilobytes(b.proc("smaps_rollup"), "Pss")
	if err != nil {
		return err
	}
	b.add(figure, pss/1000, "MB", how)
	return nil
}

func (b *dashboardBench) proc(file string) string {
	return filepath.Join("/proc", strconv.Itoa(b.process.PID()), file)
}

// measureList has people connect one after another, none of whom the dashboard knows.
func (b *dashboardBench) measureList(ctx context.Context) error {
	var first, all time.Duration
	for _, who := range b.people[dashboardBrowsers:] {
		each, err := b.enter(ctx, who)
		if err != nil {
			return err
		}
		times, err := each.list(ctx, dashboardShoots)
		each.close()
		if err != nil {
			return err
		}
		first, all = max(first, times.first), max(all, times.all)
	}
	how := fmt.Sprintf("the slowest of %d people, one after another; from before the connection is opened until the "+
		"browser has read the message", rounds)
	b.add(figureFirstRows, milliseconds(first), "ms", how)
	b.add(figureAllRows, milliseconds(all), "ms", "the same")
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// measureConnecting has all browsers log in, one after another, and then open their connections at once.
func (b *dashboardBench) measureConnecting(ctx context.Context) ([]*browser, error) {
	browsers := make([]*browser, dashboardBrowsers)
	err := inParallel(ctx, dashboardBrowsers, func(ctx context.Context, number int) (err error) {
		browsers[number], err = b.enter(ctx, b.people[number])
		return err
	})
	if err != nil {
		return nil, err
	}
	cpu, err := cpuOf(b.process.PID())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	group, groupContext := errgroup.WithContext(ctx)
	for _, each := range browsers {
		group.Go(func() error {
			_, err := each.list(groupContext, dashboardShoots)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return browsers, err
	}
	took := time.Since(start)
	after, err := cpuOf(b.process.PID())
	b.add(figureConnected, took.Seconds(), "s", fmt.Sprintf("%d people with a browser, a connection and a credential "+
		"each, logged in before; the dashboard takes %.1f s of CPU, and the browsers are on the same machine",
		dashboardBrowsers, after-cpu))
	return browsers, err
}

// measureWatching counts the watches in the garden's API while all browsers are connected.
func (b *dashboardBench) measureWatching(ctx context.Context) error {
	connected, err := b.gauge(ctx, "trellis_dashboard_sockets")
	if err != nil {
		return err
	}
	if connected != dashboardBrowsers {
		return fmt.Errorf("%v browsers are connected, not %d", connected, dashboardBrowsers)
	}
	found, err := b.watches(ctx)
	if err != nil {
		return err
	}
	b.add(figureWatches, (found-b.others)/dashboardBrowsers, "", "watches that garden-apiserver counts, less those "+
		"before the first browser came; each browser is of another person, and shows one list")
	return nil
}

// measureChanges writes to one Shoot after another, each when all browsers have the change before.
func (b *dashboardBench) measureChanges(ctx context.Context, browsers []*browser) error {
	reading, stop := context.WithCancel(ctx)
	defer stop()
	w := &wave{browsers: len(browsers)}
	for _, each := range browsers {
		go func() { w.end(reading, each.follow(w.receive)) }()
		go each.keepAlive(reading)
	}
	var took []time.Duration
	for number := range dashboardChanges {
		text := fmt.Sprintf("bench-%d.", number)
		done := w.begin(text)
		start := time.Now()
		if err := b.change(ctx, number, text); err != nil {
			return err
		}
		if err := w.await(ctx, done); err != nil {
			return fmt.Errorf("change %d: %w", number, err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	how := fmt.Sprintf("%d status patches, each when all had the one before; from before the write until the last "+
		"browser has read its message. Pages draw 50 ms later at most", dashboardChanges)
	b.add(figureShown50, quantile(took, 50), "ms", how)
	b.add(figureShown99, quantile(took, 99), "ms", "the same")
	return nil
}

func (b *dashboardBench) measureBusy(ctx context.Context) error {
	if err := b.addMemory(ctx, figureDashboardMemory, "PSS after the changes"); err != nil {
		return err
	}
	peak, err := kilobytes(b.proc("status"), "VmHWM")
	if err != nil {
		return err
	}
	b.add(figureDashboardPeak, peak/1000, "MB", "the largest RSS in the whole measurement, which is while all connect")
	return nil
}

// watches counts those that garden-apiserver serves.
func (b *dashboardBench) watches(ctx context.Context) (float64, error) {
	caller, err := rest.HTTPClientFor(b.Config)
	if err != nil {
		return 0, err
	}
	text, err := b.metrics(ctx, caller, b.GardenAPIServerURL+"/metrics")
	if err != nil {
		return 0, err
	}
	return sumOf(text, "apiserver_longrunning_requests", map[string]string{"verb": "WATCH"})
}

// gauge reads a metric of the dashboard.
func (b *dashboardBench) gauge(ctx context.Context, name string) (float64, error) {
	text, err := b.metrics(ctx, http.DefaultClient, "http://"+b.health+"/metrics")
	if err != nil {
		return 0, err
	}
	return sumOf(text, name, nil)
}

func (b *dashboardBench) metrics(ctx context.Context, caller *http.Client, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := caller.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s: %.200s", address, response.Status, text)
	}
	return string(text), err
}
