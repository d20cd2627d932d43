// Package federation tests a fleet against real API servers: one of the fleet and two of members. No kubelet runs
// anywhere; the tests write the status that a member's controllers would. Every test has a world of its own (newWorld),
// and several tests run side by side.
package federation

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/federation/admission"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/test/integration/environment"
	"github.com/trellis-garden/trellis/test/precedence"
	"github.com/trellis-garden/trellis/test/seedegress"
)

var (
	memberNames = []string{"member1", "member2"}
	// ctx outlives tests: what they clean up needs it.
	ctx = context.Background()
)

func TestMain(m *testing.M) {
	log := textlogger.NewConfig(textlogger.Output(io.Discard))
	if path := os.Getenv("TRELLIS_TEST_LOG"); path != "" {
		if file, err := os.Create(path); err == nil {
			log = textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(1))
		}
	}
	ctrl.SetLogger(textlogger.NewLogger(log))
	precedence.Take()
	binary, err := environment.KubernetesBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// A default, which the command line may change.
	if err := flag.Set("test.parallel", strconv.Itoa(mostWorlds)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m, binary))
}

func run(m *testing.M, binary string) int {
	etcd, stop, err := startEtcd()
	if err == nil {
		defer stop()
		worlds, err = newPool(binary, etcd)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the environment:", err)
		return 1
	}
	code := m.Run()
	err = worlds.close()
	if err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, "the tests left behind:", err)
		return 1
	}
	return code
}

// installPolicies returns when the API server enforces them. It learns of policies in the order in which they were
// written, and of bindings too, so all are enforced once one is that was written last.
func (w *world) installPolicies() error {
	if err := admission.Install(ctx, w.fleet); err != nil {
		return err
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "last-"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
						},
					},
				}},
			},
			MatchConditions: []admissionregistrationv1.MatchCondition{
				{Name: "probe", Expression: "object.metadata.name == 'last-probe'"},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	if err := w.fleet.Create(ctx, policy); err != nil {
		return err
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{
				admissionregistrationv1.Deny,
			},
		},
	}
	if err := w.fleet.Create(ctx, binding); err != nil {
		return err
	}
	enforced := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, environment.Patience, true,
		func(ctx context.Context) (bool, error) {
			err := w.fleet.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "last-probe"},
			}, client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), policy.Name), nil
		})
	return errors.Join(enforced, w.fleet.Delete(ctx, binding), w.fleet.Delete(ctx, policy))
}

// newClient records what tests create.
func (w *world) newClient(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return w.created.by(c), nil
}

func unversioned(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(clientgoscheme.Scheme).WithoutConversion()
	return config
}

// join makes an API server a member. member1 alone has the label that one of the inputs asks for.
func (w *world) join(name string, config *rest.Config) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.CredentialsNamespace}}
	if err := w.fleet.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
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
	return errors.Join(w.fleet.Create(ctx, secret), w.fleet.Create(ctx, cluster))
}

// startFederation runs the controllers until the test ends or the returned function is called, and waits until the
// members are ready that can be reached. Those are small and live for long, so that deletions need no confirmation
// unless a test wants it.
func (w *world) startFederation(t *testing.T, changes ...func(*controllers.Options)) (kill func()) {
	t.Helper()
	kill = w.startFederationWith(t, func(*rest.Config) {}, changes...)
	w.membersAreReady(t)
	return kill
}

// membersAreReady waits for those that can be reached. The scheduler would wait for members that nobody has asked yet,
// but a world may have had a test before that has left one not ready: what is placed then goes elsewhere.
func (w *world) membersAreReady(t *testing.T) {
	t.Helper()
	for _, name := range memberNames {
		if !w.lines[name].cut() {
			w.ready(t, name, metav1.ConditionTrue, "ClusterReady")
		}
	}
}

// ready waits until a member has a Ready condition, and whatever else is to be true of it.
func (w *world) ready(t *testing.T, name string, status metav1.ConditionStatus, reason string,
	further ...func(*clusterv1alpha1.Cluster) error) *clusterv1alpha1.Cluster {
	t.Helper()
	var cluster *clusterv1alpha1.Cluster
	eventually(t, fmt.Sprintf("%s is Ready=%s", name, status), func() (err error) {
		cluster, err = w.getCluster(name)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%s is not registered", name)
		}
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1alpha1.ConditionReady)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("got %+v, want reason %s", c, reason)
		}
		for _, check := range further {
			err = errors.Join(err, check(cluster))
		}
		return err
	})
	return cluster
}

// startFederationWith changes the way to the fleet as well, and waits for nothing.
func (w *world) startFederationWith(t *testing.T, way func(*rest.Config),
	changes ...func(*controllers.Options)) (kill func()) {
	t.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	options := controllers.DefaultOptions()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	options.Clusters = controllers.ClusterOptions{
		ProbeInterval: 400 * time.Millisecond, SurveyInterval: time.Second, FailureThreshold: 500 * time.Millisecond,
		SuccessThreshold: 200 * time.Millisecond, FirstAnswer: controllers.DefaultClusterOptions().FirstAnswer,
	}
	options.Deletions.AtLeast = 10_000
	// An operator lets fleets reach this machine, where the members are.
	proxy := seedegress.Start(t, egress.Rules{
		Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("127.0.0.0/8")}},
	}, seedegress.World{})
	options.Dial = proxy.Dialer(t, fleetNamespace).DialContext
	for _, change := range changes {
		change(&options)
	}
	config := rest.CopyConfig(w.fleetConfig)
	config.BearerToken = fleetToken
	way(config)
	w.federations.Add(1)
	go func() { done <- controllers.Run(running, config, options) }()
	kill = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the controllers ended with: %v", err)
		}
		w.federations.Add(-1)
	})
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
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
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
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("kubectl"),
			client.ForceOwnership); err != nil {
			t.Fatalf("applying %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
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
func (w *world) replicasIn(t *testing.T, namespace string, want ...int64) {
	t.Helper()
	for i, name := range memberNames {
		eventually(t, fmt.Sprintf("%s has %d replicas", name, want[i]), func() error {
			object, err := deployment(w.member[name], namespace)
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

func (w *world) bindingOf(namespace string) (*workv1alpha2.ResourceBinding, error) {
	b := &workv1alpha2.ResourceBinding{}
	return b, w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "nginx-deployment"}, b)
}

// condition waits until the binding has a condition of that status whose message contains text.
func (w *world) condition(t *testing.T, namespace, conditionType string, status metav1.ConditionStatus, text string) {
	t.Helper()
	eventually(t, conditionType+" is "+string(status), func() error {
		b, err := w.bindingOf(namespace)
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
func (w *world) playController(t *testing.T, namespace string) {
	t.Helper()
	for _, name := range memberNames {
		object, err := deployment(w.member[name], namespace)
		if err != nil {
			t.Fatal(err)
		}
		replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
		before := object.DeepCopy()
		object.Object["status"] = map[string]any{
			"observedGeneration": object.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
			"readyReplicas": replicas, "availableReplicas": replicas,
		}
		if err := w.member[name].Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
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

func (w *world) nothingLeft(t *testing.T, namespace string) {
	t.Helper()
	w.replicasIn(t, namespace, -1, -1)
	eventually(t, "bindings and Works are gone", func() error {
		if _, err := w.bindingOf(namespace); wantGone(err) != nil {
			return errors.New("the binding is still there")
		}
		var list workv1alpha1.WorkList
		if err := w.fleet.List(ctx, &list); err != nil {
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
