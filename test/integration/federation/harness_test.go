// Package federation tests a fleet against real API servers: one of the fleet and two of members. No kubelet runs
// anywhere; the tests write the status that a member's controllers would.
package federation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
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
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/federation/admission"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/crds"
	"github.com/trellis-garden/trellis/test/integration/environment"
	"github.com/trellis-garden/trellis/test/seedegress"
)

var (
	servers     *apiServers
	fleetConfig *rest.Config
	fleet       client.Client
	member      = map[string]client.Client{}
	memberNames = []string{"member1", "member2"}
	// lines are what the fleet reaches its members by.
	lines = map[string]*line{"member1": {}, "member2": {}}
	ctx   = context.Background()
)

func TestMain(m *testing.M) {
	log := textlogger.NewConfig(textlogger.Output(io.Discard))
	if path := os.Getenv("TRELLIS_TEST_LOG"); path != "" {
		if file, err := os.Create(path); err == nil {
			log = textlogger.NewConfig(textlogger.Output(file), textlogger.Verbosity(1))
		}
	}
	ctrl.SetLogger(textlogger.NewLogger(log))
	binary, err := environment.KubernetesBinary()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m, binary))
}

func run(m *testing.M, binary string) int {
	var err error
	servers, err = startAPIServers(binary)
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
	if code := m.Run(); code != 0 {
		return code
	}
	if err := nothingIsLeft(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests left behind:", err)
		return 1
	}
	return 0
}

func startAll(servers *apiServers) error {
	scheme, err := controllers.NewScheme()
	if err != nil {
		return err
	}
	configs := map[string]*rest.Config{}
	selector, err := servers.startEgress()
	if err != nil {
		return err
	}
	further := map[string][]string{"fleet": {"--egress-selector-config-file=" + selector}}
	for _, name := range append([]string{"fleet"}, memberNames...) {
		config, stop, err := servers.start(name, further[name]...)
		if err != nil {
			return err
		}
		configs[name], servers.stops = config, append(servers.stops, stop)
	}
	for name, config := range configs {
		if err := waitReady(config); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	fleetConfig = configs["fleet"]
	if fleet, err = newClient(fleetConfig, scheme); err != nil {
		return err
	}
	if err := errors.Join(crds.Install(ctx, fleet), installPolicies(), fleetextension.ApplyRBAC(ctx, fleet)); err != nil {
		return err
	}
	for _, name := range memberNames {
		if member[name], err = newClient(configs[name], scheme); err != nil {
			return err
		}
		if err := lines[name].connect(configs[name]); err != nil {
			return err
		}
		if err := join(name, configs[name]); err != nil {
			return err
		}
	}
	return nil
}

// installPolicies returns when the API server enforces them. It learns of policies in the order in which they were written, and of
// bindings too, so all are enforced once one is that was written last.
func installPolicies() error {
	if err := admission.Install(ctx, fleet); err != nil {
		return err
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "last-"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "probe", Expression: "object.metadata.name == 'last-probe'"}},
			Validations:     []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	if err := fleet.Create(ctx, policy); err != nil {
		return err
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	if err := fleet.Create(ctx, binding); err != nil {
		return err
	}
	enforced := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := fleet.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "last-probe"}}, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), policy.Name), nil
	})
	return errors.Join(enforced, fleet.Delete(ctx, binding), fleet.Delete(ctx, policy))
}

// newClient records what tests create.
func newClient(config *rest.Config, scheme *runtime.Scheme) (client.Client, error) {
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return created.by(c), nil
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

// startFederation runs the controllers until the test ends or the returned function is called. The tests' members are small and live
// for long, so that deletions need no confirmation unless a test wants it.
func startFederation(t *testing.T, changes ...func(*controllers.Options)) (kill func()) {
	t.Helper()
	return startFederationWith(t, func(*rest.Config) {}, changes...)
}

// startFederationWith changes the way to the fleet as well.
func startFederationWith(t *testing.T, way func(*rest.Config), changes ...func(*controllers.Options)) (kill func()) {
	t.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	options := controllers.DefaultOptions()
	options.MetricsAddress, options.HealthAddress = "0", "0"
	options.Clusters = controllers.ClusterOptions{
		ProbeInterval: 200 * time.Millisecond, SurveyInterval: time.Second, FailureThreshold: 500 * time.Millisecond, SuccessThreshold: 200 * time.Millisecond,
	}
	options.Deletions.AtLeast = 10_000
	// An operator lets fleets reach this machine, where the members are.
	proxy := seedegress.Start(t, egress.Rules{Allowed: []egress.Allowance{{Network: netip.MustParsePrefix("127.0.0.0/8")}}}, seedegress.World{})
	options.Dial = proxy.Dialer(t, fleetNamespace).DialContext
	for _, change := range changes {
		change(&options)
	}
	config := rest.CopyConfig(fleetConfig)
	config.BearerToken = fleetToken
	way(config)
	federations.Add(1)
	go func() { done <- controllers.Run(running, config, options) }()
	kill = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the controllers ended with: %v", err)
		}
		federations.Add(-1)
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
