package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/crds"
	"github.com/trellis-garden/trellis/test/integration/environment"
	"github.com/trellis-garden/trellis/test/simulated"
)

// The size of the fleets that are measured.
const (
	fleetObjects  = 1000
	fleetBindings = 10000
	fleetChanges  = 200
	fleetTimeout  = 20 * time.Minute
	// fleetNodes is how many nodes each simulated member has.
	fleetNodes = 5
)

// federationProcess makes this program the federation process of the fleet under measurement, when it is its first
// argument.
const federationProcess = "federation-process"

// fleetBench is a fleet under measurement: etcd, kube-apiserver and the federation process are processes of their own,
// the members are simulated by this one.
type fleetBench struct {
	*environment.Environment
	fleet      client.Client
	watcher    client.WithWatch
	arrivals   arrivals
	members    []*simulated.Server
	federation *environment.Process
	kubeconfig string
	found      []measurement
}

// measureFleets measures fleets of 10 and 100 members, and one with many bindings.
func measureFleets(ctx context.Context) ([]measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, fleetTimeout)
	defer cancel()
	log.SetLogger(logr.Discard())
	var found []measurement
	for _, members := range []int{10, 100} {
		b, err := newFleetBench(ctx, members)
		if err == nil {
			err = b.whileItRuns(ctx, b.measure)
			b.stop()
		}
		if b != nil {
			found = append(found, b.found...)
		}
		if err != nil {
			return found, fmt.Errorf("fleet of %d members: %w", members, err)
		}
	}
	return found, nil
}

func newFleetBench(ctx context.Context, members int) (*fleetBench, error) {
	binary, err := environment.KubernetesBinary()
	if err != nil {
		return nil, err
	}
	env, err := environment.StartWith(ctx, environment.Options{Binary: binary, OwnProcesses: true, WithoutGarden: true})
	if err != nil {
		return nil, err
	}
	b := &fleetBench{Environment: env}
	if err := b.prepare(ctx, members); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// whileItRuns does something that ends when the federation process does.
func (b *fleetBench) whileItRuns(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-ctx.Done():
		case <-b.federation.Exited():
			text, err := b.federation.Log()
			cancel(errors.Join(fmt.Errorf("the federation process has ended; its log begins: %.4000s", text), err))
		}
	}()
	if err := do(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return nil
}

func (b *fleetBench) stop() {
	b.Environment.Stop()
	for _, member := range b.members {
		member.Close()
	}
}

// prepare starts the federation with its members, and waits until all are ready.
func (b *fleetBench) prepare(ctx context.Context, members int) error {
	config := rest.CopyConfig(b.Config)
	config.QPS = -1
	watcher, err := client.NewWithWatch(config, client.Options{Scheme: fleetscheme.Scheme()})
	if err != nil {
		return err
	}
	b.watcher, b.fleet = watcher, watcher
	if err := crds.Install(ctx, b.fleet); err != nil {
		return err
	}
	if b.kubeconfig, err = b.Kubeconfig("admin", "system:masters"); err != nil {
		return err
	}
	for _, name := range []string{clusterv1alpha1.CredentialsNamespace, fleetNamespace} {
		if err := b.fleet.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	if err := b.start(); err != nil {
		return err
	}
	for number := range members {
		if err := b.join(ctx, number); err != nil {
			return err
		}
	}
	return b.waitReady(ctx)
}

// fleetNamespace holds what is propagated.
const fleetNamespace = "bench"

func (b *fleetBench) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.federation, err = b.Run("federation", self, federationProcess, b.kubeconfig)
	return err
}

// fleetMemory is what a fleet's controllers may use by default before they collect garbage more eagerly.
const fleetMemory = 512 << 20

// serveFederation is the federation process; it runs until it is killed.
func serveFederation(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	debug.SetMemoryLimit(fleetMemory)
	options := controllers.DefaultOptions()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	// Changes of all objects at once are what is measured.
	options.Deletions.AtLeast = fleetBindings
	log.SetLogger(logr.Discard())
	if folder := os.Getenv(profileVariable); folder != "" {
		if err := profileFor(profiledTime,
			filepath.Join(folder, fmt.Sprintf("federation-%d.cpu.pprof", os.Getpid()))); err != nil {
			return err
		}
	}
	return controllers.Run(ctx, config, options)
}

// profiledTime is the beginning of the federation process that is profiled when profiles are wanted.
const profiledTime = 40 * time.Second

// profileFor writes a CPU profile of this process.
func profileFor(duration time.Duration, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	time.AfterFunc(duration, func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	})
	return nil
}

func unversioned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	return config
}

func memberName(number int) string { return fmt.Sprintf("member-%03d", number) }

// join starts a member with its nodes, and makes it one of the fleet.
func (b *fleetBench) join(ctx context.Context, number int) error {
	member := simulated.New()
	member.Changed = b.played
	b.members = append(b.members, member)
	for node := range fleetNodes {
		member.Put("nodes", "", fmt.Sprintf("node-%d", node), benchNode())
	}
	for _, namespace := range []string{metav1.NamespaceSystem, fleetNamespace} {
		member.Put("namespaces", "", namespace, map[string]any{})
	}
	name := memberName(number)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterv1alpha1.CredentialsNamespace},
		Data:       map[string][]byte{clusterv1alpha1.SecretToken: []byte("none")},
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: member.URL, InsecureSkipTLSVerification: true,
			Region:    fmt.Sprintf("region-%d", number%5),
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}
	return errors.Join(b.fleet.Create(ctx, secret), b.fleet.Create(ctx, cluster))
}

func benchNode() map[string]any {
	amounts := map[string]any{"cpu": "64", "memory": "256Gi", "pods": "1000"}
	return map[string]any{
		"spec": map[string]any{},
		"status": map[string]any{
			"allocatable": amounts, "capacity": amounts,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}
}

func (b *fleetBench) waitReady(ctx context.Context) error {
	return waitUntil(ctx, "the members to be ready", func() (bool, error) {
		var list clusterv1alpha1.ClusterList
		if err := b.fleet.List(ctx, &list); err != nil {
			return false, err
		}
		for _, cluster := range list.Items {
			if cluster.Status.ResourceSummary == nil || len(cluster.Status.APIEnablements) == 0 ||
				cluster.Status.ResourceSummary.Allocatable.Cpu().IsZero() {
				return false, nil
			}
		}
		return len(list.Items) == len(b.members), nil
	})
}

// waitUntil asks every few milliseconds.
func waitUntil(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		ready, err := done()
		if err != nil || ready {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (b *fleetBench) add(name string, value float64, unit, how string) {
	fmt.Printf("  %s: %s %s (%s)\n", name, number(value), unit, how)
	b.found = append(b.found, measurement{Name: name, Value: value, Unit: unit, How: how})
}

// measure takes all figures of a fleet.
func (b *fleetBench) measure(ctx context.Context) error {
	if err := b.measureCeiling(ctx); err != nil {
		return fmt.Errorf("raw writes: %w", err)
	}
	if err := b.measureDecisions(ctx); err != nil {
		return fmt.Errorf("decisions: %w", err)
	}
	if err := b.measureDecisionsAnew(ctx); err != nil {
		return fmt.Errorf("decisions made anew: %w", err)
	}
	if err := b.measureChanges(ctx); err != nil {
		return fmt.Errorf("changes: %w", err)
	}
	if len(b.members) != 100 {
		return nil
	}
	return b.measureManyBindings(ctx)
}

// fleetCost is what a fleet has used: CPU time by process, and requests to its API.
type fleetCost struct {
	etcd, server, federation float64
	requests                 requests
}

func (b *fleetBench) cost(ctx context.Context) (fleetCost, error) {
	etcd, errEtcd := cpuOf(b.Etcd.PID())
	server, errServer := cpuOf(b.KubeAPIServer.PID())
	federation, errFederation := cpuOf(b.federation.PID())
	requests, errRequests := b.requestsTo(ctx)
	return fleetCost{etcd, server, federation, requests}, errors.Join(errEtcd, errServer, errFederation, errRequests)
}

// since says what each object took.
func (c fleetCost) since(before fleetCost, objects int) string {
	each := func(after, before float64) string {
		return strconv.FormatFloat((after-before)*1000/float64(objects), 'f', 1, 64)
	}
	return fmt.Sprintf("CPU for each: kube-apiserver %s ms, etcd %s ms, federation %s ms; requests to the fleet for "+
		"each: %s",
		each(c.server, before.server), each(c.etcd, before.etcd), each(c.federation, before.federation),
		c.requests.perObject(before.requests, objects))
}

// measureCeiling writes bindings that nobody acts upon: what the fleet's API takes at most.
func (b *fleetBench) measureCeiling(ctx context.Context) error {
	start := time.Now()
	before, err := b.cost(ctx)
	if err != nil {
		return err
	}
	err = inParallel(ctx, fleetObjects, func(ctx context.Context, number int) error {
		binding := &workv1alpha2.ResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: fmt.Sprintf("raw-%d", number)},
			Spec: workv1alpha2.ResourceBindingSpec{
				Resource: workv1alpha2.ObjectReference{
					APIVersion: "v1", Kind: "ConfigMap", Namespace: fleetNamespace, Name: "none",
				},
			},
		}
		return b.fleet.Create(ctx, binding)
	})
	if err != nil {
		return err
	}
	after, err := b.cost(ctx)
	if err != nil {
		return err
	}
	rate := float64(fleetObjects) / time.Since(start).Seconds()
	b.add(b.figure(figureCeiling), rate, "per s",
		fmt.Sprintf("%d by %d clients, etcd syncing to disk; %s", fleetObjects, gardenClients,
			after.since(before, fleetObjects)))
	return b.fleet.DeleteAllOf(ctx, &workv1alpha2.ResourceBinding{}, client.InNamespace(fleetNamespace))
}

// The figures of a fleet.
const (
	figureCeiling    = "ResourceBindings created, nothing decided (what the API takes at most)"
	figurePlaced     = "Deployments placed, in two members each"
	figureAnew       = "placements decided anew for a WorkloadRebalancer"
	figureReported   = "Deployments placed, applied in two members each, and reported"
	figureChanged    = "template changed → applied in 10 members, median"
	figureChangedP99 = "template changed → applied in 10 members, p99"
	figureBindings   = "memory of the federation process at 10,000 bindings"
)

func fleetFigure(members int, what string) string {
	return fmt.Sprintf("fleet of %d members: %s", members, what)
}

func (b *fleetBench) figure(what string) string { return fleetFigure(len(b.members), what) }

// policy for the Deployments that are labelled with its name.
func (b *fleetBench) policy(name string, placement policyv1alpha1.Placement) *policyv1alpha1.PropagationPolicy {
	return &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: name},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{
				{
					APIVersion: "apps/v1", Kind: "Deployment",
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"policy": name}},
				},
			},
			Placement: placement,
		},
	}
}

func dynamic() policyv1alpha1.Placement {
	return policyv1alpha1.Placement{ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
		ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
		ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceWeighted,
		WeightPreference: &policyv1alpha1.ClusterPreferences{
			DynamicWeight: policyv1alpha1.DynamicWeightByAvailableReplicas,
		},
	}}
}

func deployment(name, policy string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name, "policy": policy}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: fleetNamespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{
						{Name: "web", Image: "nginx:1.27", Env: []corev1.EnvVar{{Name: "REVISION", Value: "1"}}},
					},
				},
			},
		},
	}
}
