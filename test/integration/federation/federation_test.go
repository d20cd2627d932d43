// Package federation tests a fleet against real API servers: one of the fleet and two of members. No kubelet runs
// anywhere; the tests write the status that a member's controllers would.
package federation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetextension "github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/crds"
)

var (
	fleetConfig *rest.Config
	fleet       client.Client
	member      = map[string]client.Client{}
	memberNames = []string{"member1", "member2"}
	ctx         = context.Background()
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard))))
	if path := os.Getenv("TRELLIS_TEST_LOG"); path != "" {
		if log, err := os.Create(path); err == nil {
			ctrl.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log), textlogger.Verbosity(1))))
		}
	}
	binary, err := kubernetesBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(0)
	}
	os.Exit(run(m, binary))
}

func run(m *testing.M, binary string) int {
	servers, err := startAPIServers(binary)
	if servers != nil {
		defer servers.stop()
	}
	if err == nil {
		err = startAll(servers)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the environment:", err)
		return 1
	}
	return m.Run()
}

func startAll(servers *apiServers) error {
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	configs := map[string]*rest.Config{}
	for _, name := range append([]string{"fleet"}, memberNames...) {
		if configs[name], err = servers.start(name); err != nil {
			return err
		}
	}
	for name, config := range configs {
		if err := waitReady(config); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fleetConfig = configs["fleet"]
	if fleet, err = client.New(fleetConfig, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := errors.Join(crds.Install(ctx, fleet), fleetextension.ApplyRBAC(ctx, fleet)); err != nil {
		return err
	}
	for _, name := range memberNames {
		if member[name], err = client.New(configs[name], client.Options{Scheme: scheme}); err != nil {
			return err
		}
		if err := join(name, configs[name]); err != nil {
			return err
		}
	}
	return nil
}

func unversioned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(clientgoscheme.Scheme).WithoutConversion()
	return config
}

// join makes an API server a member. member1 alone has the label that one of the inputs asks for.
func join(name string, config *rest.Config) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.CredentialsNamespace}}
	if err := fleet.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace.Name},
		Data:       map[string][]byte{clusterv1alpha1.SecretToken: []byte(config.BearerToken)},
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: config.Host, InsecureSkipTLSVerification: true,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}
	if name == "member1" {
		cluster.Labels["failuredomain.kubernetes.io/region"] = "dc1"
	}
	return errors.Join(fleet.Create(ctx, secret), fleet.Create(ctx, cluster))
}

// startFederation runs the controllers until the test ends or the returned function is called.
func startFederation(t *testing.T) (kill func()) {
	t.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	options := controllers.DefaultOptions()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	options.Clusters = controllers.ClusterOptions{
		ProbeInterval: 200 * time.Millisecond, SurveyInterval: time.Second, FailureThreshold: 500 * time.Millisecond, SuccessThreshold: 200 * time.Millisecond,
	}
	config := rest.CopyConfig(fleetConfig)
	config.BearerToken = fleetToken
	go func() { done <- controllers.Run(running, config, options) }()
	kill = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controllers ended with: %v", err)
		}
		done <- nil
	}
	t.Cleanup(kill)
	return kill
}

// input reads one of the YAML files that people already have.
func input(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// apply does what kubectl does, in a namespace.
func apply(t *testing.T, c client.Client, namespace string, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		object = object.DeepCopy()
		if object.GetKind() != "ClusterPropagationPolicy" && object.GetKind() != "ClusterRole" {
			object.SetNamespace(namespace)
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// newNamespace is removed from nowhere: each test has one of its own.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := fleet.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func get(c client.Client, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return object, c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
}

func deployment(c client.Client, namespace string) (*unstructured.Unstructured, error) {
	return get(c, "apps/v1", "Deployment", namespace, "nginx")
}

// replicasIn waits until the members have these numbers of replicas; -1 means no Deployment.
func replicasIn(t *testing.T, namespace string, want ...int64) {
	t.Helper()
	for i, name := range memberNames {
		eventually(t, fmt.Sprintf("%s has %d replicas", name, want[i]), func() error {
			object, err := deployment(member[name], namespace)
			if want[i] < 0 {
				return wantGone(err)
			}
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); got != want[i] {
				return fmt.Errorf("%d replicas", got)
			}
			return nil
		})
	}
}

func wantGone(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err == nil:
		return errors.New("still there")
	}
	return err
}

func bindingOf(namespace string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	return b, fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "nginx-deployment"}, b)
}

// condition waits until the binding has a condition of that status whose message contains text.
func condition(t *testing.T, namespace, conditionType string, status metav1.ConditionStatus, text string) {
	t.Helper()
	eventually(t, conditionType+" is "+string(status), func() error {
		b, err := bindingOf(namespace)
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(b.Status.Conditions, conditionType)
		if c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Errorf("condition is %+v, want %s with %q", c, status, text)
		}
		return nil
	})
}

// playController writes the status that a member's deployment controller would.
func playController(t *testing.T, namespace string) {
	t.Helper()
	for _, name := range memberNames {
		object, err := deployment(member[name], namespace)
		if err != nil {
			t.Fatal(err)
		}
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		before := object.DeepCopy()
		object.Object["status"] = map[string]any{
			"observedGeneration": object.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
		}
		if err := member[name].Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}

func remove(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Delete(ctx, object); err != nil {
		t.Fatal(err)
	}
}

func nothingLeft(t *testing.T, namespace string) {
	t.Helper()
	replicasIn(t, namespace, -1, -1)
	eventually(t, "bindings and Works are gone", func() error {
		if _, err := bindingOf(namespace); wantGone(err) != nil {
			return errors.New("the binding is still there")
		}
		var list workv1alpha1.WorkList
		if err := fleet.List(ctx, &list); err != nil {
			return err
		}
		for _, work := range list.Items {
			if work.Annotations[workv1alpha2.NamespaceAnnotation] == namespace {
				return fmt.Errorf("Work %s is still there", work.Name)
			}
		}
		return nil
	})
}

func TestLegacyOverride(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "000-karmada-nginx-3docs")...)
	replicasIn(t, namespace, 1, 1)

	one, err := deployment(member["member1"], namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := imageOf(one); got != "dc-1.registry.io/nginx:1.17.0-alpine" || one.GetAnnotations()["foo"] != "bar" {
		t.Errorf("member1: image %s, annotations %v", got, one.GetAnnotations())
	}
	two, err := deployment(member["member2"], namespace)
	if err != nil {
		t.Fatal(err)
	}
	if got := imageOf(two); got != "nginx" || two.GetAnnotations()["foo"] != "" {
		t.Errorf("member2: image %s, annotations %v", got, two.GetAnnotations())
	}
}

func imageOf(object *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	image, _ := list[0].(map[string]any)["image"].(string)
	return image
}

func TestLifeOfADeployment(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, fleet, namespace, objects...)
	replicasIn(t, namespace, 1, 1)

	t.Run("overrides", func(t *testing.T) {
		one, _ := deployment(member["member1"], namespace)
		if one.GetAnnotations()["env"] != "skoala-stage" || one.GetAnnotations()["emma"] != "" || one.GetLabels()["env"] != "" {
			t.Errorf("member1: %v %v", one.GetAnnotations(), one.GetLabels())
		}
		two, _ := deployment(member["member2"], namespace)
		if two.GetLabels()["env"] != "skoala-dev" || two.GetLabels()["env-stat"] != "skoala-stage" || two.GetLabels()["bar"] != "" {
			t.Errorf("member2: %v", two.GetLabels())
		}
	})
	t.Run("status is added up", func(t *testing.T) {
		playController(t, namespace)
		eventually(t, "2/2 ready", func() error {
			object, err := deployment(fleet, namespace)
			if err != nil {
				return err
			}
			status, _ := object.Object["status"].(map[string]any)
			if status["readyReplicas"] != int64(2) || status["observedGeneration"] != object.GetGeneration() {
				return fmt.Errorf("status %v", status)
			}
			return nil
		})
		condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
		condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "placed on member1, member2")
	})
	t.Run("what is changed in a member is put back", func(t *testing.T) {
		object, _ := deployment(member["member1"], namespace)
		patch := []byte(`{"spec":{"replicas":5},"metadata":{"annotations":{"env":"other"},"labels":{"karmada.io/managed":null}}}`)
		if err := member["member1"].Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
		replicasIn(t, namespace, 1, 1)
		eventually(t, "annotation and label are back", func() error {
			object, err := deployment(member["member1"], namespace)
			if err != nil || object.GetAnnotations()["env"] != "skoala-stage" || object.GetLabels()["karmada.io/managed"] != "true" {
				return fmt.Errorf("%v %v %w", object.GetAnnotations(), object.GetLabels(), err)
			}
			return nil
		})
	})
	t.Run("what is removed in a member comes back", func(t *testing.T) {
		object, _ := deployment(member["member2"], namespace)
		remove(t, member["member2"], object)
		eventually(t, "a new one", func() error {
			again, err := deployment(member["member2"], namespace)
			if err != nil || again.GetUID() == object.GetUID() {
				return fmt.Errorf("uid %s %w", again.GetUID(), err)
			}
			return nil
		})
	})
	t.Run("scaling", func(t *testing.T) {
		object, _ := deployment(fleet, namespace)
		if err := fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":6}}`))); err != nil {
			t.Fatal(err)
		}
		replicasIn(t, namespace, 3, 3)
	})
	t.Run("nothing is written when nothing changes", func(t *testing.T) { quietFor(t, namespace, time.Second) })
	t.Run("removing the policy removes everything", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, fleet, objects[1])
		nothingLeft(t, namespace)
		if _, err := deployment(fleet, namespace); err != nil {
			t.Errorf("the template stays: %v", err)
		}
	})
}

// quietFor watches resource versions in the fleet and the members.
func quietFor(t *testing.T, namespace string, period time.Duration) {
	t.Helper()
	versions := func() string {
		var all []string
		note := func(object client.Object, err error) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, object.GetResourceVersion())
		}
		b, err := bindingOf(namespace)
		note(b, err)
		template, err := deployment(fleet, namespace)
		note(template, err)
		for _, name := range memberNames {
			object, err := deployment(member[name], namespace)
			note(object, err)
		}
		var works workv1alpha1.WorkList
		if err := fleet.List(ctx, &works); err != nil {
			t.Fatal(err)
		}
		for i := range works.Items {
			note(&works.Items[i], nil)
		}
		return strings.Join(all, " ")
	}
	var before string
	eventually(t, "everything has settled", func() error {
		last := before
		before = versions()
		time.Sleep(200 * time.Millisecond)
		if last != before {
			return errors.New("versions still change")
		}
		return nil
	})
	time.Sleep(period)
	if after := versions(); after != before {
		t.Errorf("resource versions went from %s to %s", before, after)
	}
}

func TestDuplicatedWhenNothingIsSaid(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, fleet, namespace, input(t, "003-karmada-cool-policy")...)
	replicasIn(t, namespace, 2, 2)
	template, err := deployment(fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	remove(t, fleet, template)
	nothingLeft(t, namespace)
}

func TestSpreadOverOneCluster(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
	apply(t, fleet, namespace, input(t, "000-karmada-spread")...)
	replicasIn(t, namespace, 2, -1)
	condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue, "member2: not among the clusters that spec.placement.spreadConstraints[0] allows")
}

func TestKillBetweenTwoMembers(t *testing.T) {
	kill := startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "001-karmada-nginx-3docs")
	apply(t, fleet, namespace, objects...)
	eventually(t, "one member has it", func() error {
		_, err := deployment(member["member1"], namespace)
		_, other := deployment(member["member2"], namespace)
		if err != nil && other != nil {
			return err
		}
		return nil
	})
	kill()

	t.Run("changes while nobody looks", func(t *testing.T) {
		object, _ := deployment(fleet, namespace)
		if err := fleet.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))); err != nil {
			t.Fatal(err)
		}
	})
	kill = startFederation(t)
	replicasIn(t, namespace, 2, 2)
	condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionTrue, "")
	kill()

	t.Run("removal while nobody looks", func(t *testing.T) {
		objects[1].SetNamespace(namespace)
		remove(t, fleet, objects[1])
		template, _ := deployment(fleet, namespace)
		remove(t, fleet, template)
	})
	startFederation(t)
	nothingLeft(t, namespace)
}

func TestForeignObjectsAreNotTouched(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	template := input(t, "000-karmada-nginx-3docs")[0]
	if err := member["member1"].Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	foreign := template.DeepCopy()
	if err := unstructured.SetNestedField(foreign.Object, int64(7), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	apply(t, member["member1"], namespace, foreign)
	apply(t, fleet, namespace, append(objects, template)...)
	condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse, "not managed by this fleet; remove it there, or set spec.conflictResolution: Overwrite")
	replicasIn(t, namespace, 7, 2)

	policy := objects[0].DeepCopy()
	if err := unstructured.SetNestedField(policy.Object, "Overwrite", "spec", "conflictResolution"); err != nil {
		t.Fatal(err)
	}
	apply(t, fleet, namespace, policy)
	replicasIn(t, namespace, 2, 2)
}

func TestUnknownClusterIsExplained(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	policy := input(t, "003-karmada-cool-policy")[0]
	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"member1", "membre2"}, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	apply(t, fleet, namespace, policy, input(t, "000-karmada-nginx-3docs")[0])
	condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionTrue,
		"membre2: spec.placement.clusterAffinity.clusterNames[1]: the fleet has no cluster of this name; it has member1, member2")
	replicasIn(t, namespace, 2, -1)

	if err := unstructured.SetNestedStringSlice(policy.Object, []string{"nowhere"}, "spec", "placement", "clusterAffinity", "clusterNames"); err != nil {
		t.Fatal(err)
	}
	apply(t, fleet, namespace, policy)
	condition(t, namespace, workv1alpha2.ConditionScheduled, metav1.ConditionFalse, "no cluster fits: 0 of 2")
}

func TestOverrideWithMissingPathIsShown(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, parse(t, `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: broken}
spec:
  overrideRules:
  - targetCluster: {clusterNames: [member2]}
    overriders:
      plaintext: [{path: /spec/strategy/nothing/here, operator: replace, value: 1}]
`)...)
	apply(t, fleet, namespace, input(t, "003-karmada-cool-policy")[0], input(t, "000-karmada-nginx-3docs")[0])
	condition(t, namespace, workv1alpha2.ConditionFullyApplied, metav1.ConditionFalse,
		`OverridePolicy `+namespace+`/broken: spec.overrideRules[0].overriders.plaintext[0].path: "/spec/strategy/nothing" does not exist in the object`)
	replicasIn(t, namespace, 2, -1)
}

func TestClusterWideObjects(t *testing.T) {
	startFederation(t)
	apply(t, fleet, "", parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fleet-test}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: roles}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: fleet-test}]
`)...)
	role := func(name string) error {
		_, err := get(member[name], "rbac.authorization.k8s.io/v1", "ClusterRole", "", "fleet-test")
		return err
	}
	for _, name := range memberNames {
		eventually(t, name+" has the role", func() error { return role(name) })
	}
	policy, err := get(fleet, "policy.karmada.io/v1alpha1", "ClusterPropagationPolicy", "", "roles")
	if err != nil {
		t.Fatal(err)
	}
	remove(t, fleet, policy)
	for _, name := range memberNames {
		eventually(t, name+" has lost the role", func() error { return wantGone(role(name)) })
	}
}

func TestMembersAreDescribed(t *testing.T) {
	startFederation(t)
	for _, name := range memberNames {
		eventually(t, name+" is ready", func() error {
			cluster := &clusterv1alpha1.Cluster{}
			if err := fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1alpha1.ConditionReady) || cluster.Status.KubernetesVersion == "" || len(cluster.Status.APIEnablements) == 0 || cluster.Status.NodeSummary == nil {
				return fmt.Errorf("status %+v", cluster.Status)
			}
			return nil
		})
	}
}

func TestBadPoliciesAreRefused(t *testing.T) {
	namespace := newNamespace(t)
	const selectors = `resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]`
	tests := map[string]struct{ kind, spec, want string }{
		"two affinities":              {"PropagationPolicy", selectors + `, placement: {clusterAffinity: {}, clusterAffinities: [{affinityName: a}]}`, "spec.placement.clusterAffinities"},
		"no selector":                 {"PropagationPolicy", `resourceSelectors: []`, "spec.resourceSelectors"},
		"more at least than at most":  {"PropagationPolicy", selectors + `, placement: {spreadConstraints: [{spreadByField: cluster, minGroups: 3, maxGroups: 2}]}`, "spec.placement.spreadConstraints[0].maxGroups"},
		"region without cluster":      {"PropagationPolicy", selectors + `, placement: {spreadConstraints: [{spreadByField: region}]}`, "needs one with spreadByField: cluster"},
		"the same field twice":        {"PropagationPolicy", selectors + `, placement: {spreadConstraints: [{spreadByField: cluster}, {maxGroups: 1}]}`, "spec.placement.spreadConstraints"},
		"a weight of nothing":         {"PropagationPolicy", selectors + `, placement: {replicaScheduling: {weightPreference: {staticWeightList: [{targetCluster: {}, weight: 0}]}}}`, "weight"},
		"an unknown division":         {"PropagationPolicy", selectors + `, placement: {replicaScheduling: {replicaSchedulingType: Sometimes}}`, "Duplicated"},
		"preemption without a name":   {"PropagationPolicy", selectors + `, preemption: Always`, "spec.preemption"},
		"both forms of an override":   {"OverridePolicy", `targetCluster: {}, overrideRules: [{overriders: {}}]`, "spec.targetCluster"},
		"both forms, with overriders": {"OverridePolicy", `overriders: {plaintext: [{path: /a, operator: add}]}, overrideRules: [{overriders: {}}]`, "spec.overriders"},
		"a path that is no pointer":   {"OverridePolicy", `overriders: {plaintext: [{path: a, operator: add}]}`, "spec.overriders.plaintext[0].path"},
		"an unknown operator":         {"OverridePolicy", `overriders: {plaintext: [{path: /a, operator: set}]}`, "operator"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, fmt.Sprintf("{apiVersion: policy.karmada.io/v1alpha1, kind: %s, metadata: {name: bad, namespace: %s}, spec: {%s}}", tc.kind, namespace, tc.spec))[0]
			err := fleet.Create(ctx, object)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want it refused because of %s", err, tc.want)
			}
		})
	}
}

func TestMemberLeaves(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	apply(t, fleet, namespace, input(t, "003-karmada-cool-policy")[0], input(t, "000-karmada-nginx-3docs")[0])
	replicasIn(t, namespace, 2, 2)
	cluster := &clusterv1alpha1.Cluster{}
	if err := fleet.Get(ctx, types.NamespacedName{Name: "member2"}, cluster); err != nil {
		t.Fatal(err)
	}
	remove(t, fleet, cluster)
	replicasIn(t, namespace, 2, -1)
	eventually(t, "the cluster is gone", func() error {
		return wantGone(fleet.Get(ctx, types.NamespacedName{Name: "member2"}, cluster))
	})

	finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("member2"))
	back := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member2"}, Spec: cluster.Spec}
	back.Spec.Taints = nil
	eventually(t, "the cluster may come back", func() error { return fleet.Create(ctx, back) })
}

// finalizeNamespace does what a fleet's namespace controller would.
func finalizeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{}
	if err := fleet.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.DeletionTimestamp == nil {
		t.Fatalf("namespace %s is not being deleted", name)
	}
	namespace.Spec.Finalizers = nil
	if err := fleet.SubResource("finalize").Update(ctx, namespace); err != nil {
		t.Fatal(err)
	}
}

func TestStatusIsClearedWhenThePolicyGoes(t *testing.T) {
	startFederation(t)
	namespace := newNamespace(t)
	objects := input(t, "003-karmada-cool-policy")
	apply(t, fleet, namespace, objects[0], input(t, "000-karmada-nginx-3docs")[0])
	replicasIn(t, namespace, 2, 2)
	playController(t, namespace)
	ready := func(want int64) func() error {
		return func() error {
			object, err := deployment(fleet, namespace)
			if err != nil {
				return err
			}
			if got, _, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas"); got != want {
				return fmt.Errorf("%d are ready", got)
			}
			return nil
		}
	}
	eventually(t, "all are ready", ready(4))
	objects[0].SetNamespace(namespace)
	remove(t, fleet, objects[0])
	nothingLeft(t, namespace)
	eventually(t, "none is ready", ready(0))
}
