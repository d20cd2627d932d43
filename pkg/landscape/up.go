package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trellis-garden/trellis/pkg/images"
)

// UpOptions change what `up` does.
type UpOptions struct {
	// Phases limits the run to these phases; empty means all.
	Phases []string
	// KubernetesVersions are built in addition to the default one.
	KubernetesVersions []string
	// Nodes is how many nodes the runtime cluster is to have; 0 leaves it as it is, which is one at first.
	Nodes int
	// NoBuild takes what has been built before.
	NoBuild bool
}

// phase is one part of bringing up a landscape. It can be run again at any time and then only does what is missing.
type phase struct {
	// name is what --phase takes.
	name  string
	title string
	run   func(context.Context, *run) error
	// withoutImages says that it uses none of the images that are built.
	withoutImages bool
	// lookAt says where to look when the phase fails: commands or files.
	lookAt []string
	// patience is how long the phase may go on without progress.
	patience time.Duration
	// afterwards runs in the background while the next phases do. It saves time and must not be needed for anything.
	afterwards func(context.Context, *run)
}

// run is one call of `up`.
type run struct {
	*Landscape
	UpOptions
	*Progress
	// state is what the landscape remembers: of the last run until this one is registered.
	state state
	// wanted is how many nodes there are to be.
	wanted int
	// clusters are the connections to API servers that phases share.
	clusters clusters
	// release gives up the lock on the landscape.
	release func()
}

// unlock lets others change the landscape again.
func (r *run) unlock() {
	if r.release != nil {
		r.release()
	}
}

func (l *Landscape) phases() []phase {
	pods := fmt.Sprintf("bin/kubectl --kubeconfig %s get pods -A", l.RuntimeKubeconfig())
	log := func(name string) string { return filepath.Join(l.logDir(firstNode), name) }
	garden := fmt.Sprintf("bin/kubectl --kubeconfig %s -n garden get pods", l.RuntimeKubeconfig())
	shoots := fmt.Sprintf("bin/kubectl --kubeconfig %s -n %s describe shoots", l.GardenKubeconfig(), demoNS)
	return []phase{
		{
			name: "host", title: "Check this machine", run: checkHostPhase, patience: time.Minute, withoutImages: true,
		},
		{
			name: "build", title: "Build programs and images", run: buildPhase, lookAt: []string{l.Log()},
			patience: time.Hour, withoutImages: true,
		},
		{name: "node", title: "Start the node",
			run: nodePhase, lookAt: []string{log("supervisor.log"), log("node.log")},
			patience: 2 * time.Minute},
		{name: "runtime", title: "Runtime cluster",
			run: runtimePhase, lookAt: []string{log("kubelet.log"), log("containerd.log"), log("pods")},
			patience: 5 * time.Minute},
		{name: "system", title: "DNS of the runtime cluster",
			run: systemPhase, lookAt: []string{pods}, patience: 3 * time.Minute, afterwards: prepullImages},
		{name: "cloud", title: "Local cloud", run: cloudPhase, lookAt: []string{pods}, patience: 3 * time.Minute},
		{name: "gateway", title: "Gateway", run: gatewayPhase, lookAt: []string{pods}, patience: 3 * time.Minute},
		{name: "garden", title: "Garden", run: gardenPhase, lookAt: []string{garden}, patience: 5 * time.Minute},
		{name: "content", title: "Cloud profile, project, extensions",
			run: contentPhase, lookAt: []string{garden}, patience: 3 * time.Minute},
		{name: "seed", title: "Seed", run: seedPhase, lookAt: []string{garden}, patience: 5 * time.Minute},
		{name: "shoots", title: "Shoots member1, member2, fleet",
			run: shootsPhase, lookAt: []string{shoots, "bin/trellisctl ls"}, patience: 15 * time.Minute},
	}
}

// PhaseNames returns what UpOptions.Phases may hold, in the order of running.
func PhaseNames() []string {
	var names []string
	for _, p := range (&Landscape{}).phases() {
		names = append(names, p.name)
	}
	return names
}

// Up brings the landscape up, or goes on where an earlier run stopped.
func (l *Landscape) Up(ctx context.Context, options UpOptions, progress *Progress) error {
	start := time.Now()
	r, err := l.newRun(options, progress)
	if err != nil {
		return err
	}
	closeLog, err := l.openLog(progress)
	if err != nil {
		return err
	}
	defer closeLog()
	defer r.unlock()
	for _, p := range l.phases() {
		if len(options.Phases) > 0 && !slices.Contains(options.Phases, p.name) && p.name != "host" {
			continue
		}
		if err := r.runPhase(ctx, p); err != nil {
			return err
		}
		if p.afterwards != nil {
			go p.afterwards(ctx, r)
		}
	}
	if len(options.Phases) == 0 {
		if err := l.useImagesOnly(); err != nil {
			return err
		}
		fmt.Fprint(progress.out, l.summary(time.Since(start), r.state.Loopback.String()))
	}
	return nil
}

// newRun refuses what cannot be, before anything is written.
func (l *Landscape) newRun(options UpOptions, progress *Progress) (*run, error) {
	if err := known("--phase", options.Phases, PhaseNames(), "--phase build,seed"); err != nil {
		return nil, err
	}
	if err := l.checkVersions(options.KubernetesVersions); err != nil {
		return nil, err
	}
	before, err := l.state()
	if err != nil {
		return nil, err
	}
	wanted, err := l.nodesWanted(before.Nodes, options.Nodes)
	if err != nil {
		return nil, err
	}
	return &run{Landscape: l, UpOptions: options, Progress: progress, state: before, wanted: wanted}, nil
}

// checkVersions refuses versions of Kubernetes that cannot be built.
func (l *Landscape) checkVersions(versions []string) error {
	if len(versions) == 0 {
		return nil
	}
	all, err := images.KubernetesVersions(l.Root)
	if err != nil {
		return err
	}
	return known("--kubernetes-version", versions, all, "`make up KUBERNETES_VERSIONS="+all[len(all)-1]+"`")
}

// known refuses values of a flag that are not among all that it may have.
func known(flag string, values, all []string, example string) error {
	for _, value := range values {
		if !slices.Contains(all, value) {
			return fmt.Errorf("%s is %q, and has to be one of %s, as in %s", flag, value, strings.Join(all, ", "),
				example)
		}
	}
	return nil
}

// runPhase runs one phase; its error says what to look at and how to go on.
func (r *run) runPhase(ctx context.Context, p phase) error {
	r.begin(p.title)
	ctx, cancel := r.whileProgress(ctx, p.patience)
	defer cancel()
	err := r.runWithImages(ctx, p)
	r.end(err)
	if err == nil {
		return nil
	}
	r.note("%v", err)
	message := fmt.Sprintf("%s: %v", p.title, err)
	var stalled *stalledError
	if errors.As(context.Cause(ctx), &stalled) {
		message += fmt.Sprintf("\n(%v)", stalled)
	}
	if len(p.lookAt) > 0 {
		message += "\n\nWhere to look:\n  " + strings.Join(p.lookAt, "\n  ")
	}
	return fmt.Errorf("%s\n\n%s goes on from here, %s removes everything", message, r.again(), r.make("down"))
}

// runWithImages runs a phase; what it uses is written down before.
func (r *run) runWithImages(ctx context.Context, p phase) error {
	if !p.withoutImages {
		if err := r.useImages(); err != nil {
			return err
		}
	}
	return p.run(ctx, r)
}

// again is what to type to go on: how many nodes there are to be is kept only once there are.
func (r *run) again() string {
	if r.wanted > r.state.nodes() {
		return r.make("up NODES=" + strconv.Itoa(r.wanted))
	}
	return r.make("up")
}

// openLog sends the details of the run, and what libraries log, to the landscape's log.
func (l *Landscape) openLog(progress *Progress) (closeLog func(), err error) {
	if err := os.MkdirAll(l.StateDir(), 0o755); err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	file, err := os.OpenFile(l.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	progress.logTo(file)
	klog.LogToStderr(false)
	klog.SetOutput(progress)
	ctrl.SetLogger(klog.Background())
	return func() {
		klog.Flush()
		progress.logTo(discard{})
		file.Close()
	}, nil
}

type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }

func checkHostPhase(_ context.Context, r *run) (err error) {
	if err := r.checkHost(r.wanted); err != nil {
		return err
	}
	if r.release, err = r.lock(); err != nil {
		return err
	}
	if r.state.Name == "" {
		if err := r.useNoImages(); err != nil {
			return err
		}
	}
	if r.state, err = r.register(); err != nil {
		return err
	}
	return raiseInotify(filepath.Join("/proc/sys", inotifyInstances), r.wanted)
}

func nodePhase(ctx context.Context, r *run) error {
	outdated, err := r.startNode(ctx, r.state, firstNode)
	if outdated {
		r.Step("the node runs with an older configuration; %s renews it", r.make("down up"))
	}
	return err
}
