package infrastructure

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/pkg/terraform"
	"github.com/trellis-garden/trellis/extensions/pkg/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const technicalID = "shoot--demo--one"

func infrastructureOf(config string) *extensionsv1alpha1.Infrastructure {
	object := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: technicalID, Name: "one"}}
	if config != "" {
		object.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(config)}
	}
	return object
}

func actuatorWith(t *testing.T, objects ...client.Object) *actuator {
	t.Helper()
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "local-cloud", Name: "local-cloud"},
		Data:       map[string][]byte{"token": []byte("t")},
	}
	c := fake.NewClientBuilder().WithObjects(append(objects, token)...).Build()
	return &actuator{client: c, nodes: c, options: Options{
		Credentials: credentials.Source{
			Reader: c, Endpoint: "http://cloud.example", Secret: client.ObjectKeyFromObject(token),
		},
		Nameservers: []string{"172.18.0.2"},
		Terraform:   terraform.Options{WorkDir: t.TempDir(), Binary: "/no/such/terraform"},
	}}
}

// What a user has written wrongly is theirs to mend, and nothing is made before.
func TestAWrongConfiguration(t *testing.T) {
	a := actuatorWith(t)
	err := a.Reconcile(t.Context(), logr.Discard(), infrastructureOf(`{"networks":[]}`), nil)
	if err == nil || !strings.Contains(err.Error(), "infrastructureConfig: ") ||
		!slices.Equal(extension.Codes(err),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}) {
		t.Errorf("got %v", err)
	}
	roles := &rbacv1.RoleList{}
	if err := a.client.List(t.Context(), roles); err != nil || len(roles.Items) > 0 {
		t.Errorf("got %v, %v", roles.Items, err)
	}
}

// Who may make machines of a shoot: its own machine-controller, in the namespace of its machines, and nobody else.
func TestWhoMakesMachines(t *testing.T) {
	a := actuatorWith(t)
	for range 2 {
		if err := a.letMachinesIn(t.Context(), technicalID); err != nil {
			t.Fatal(err)
		}
	}
	bindings := &rbacv1.RoleBindingList{}
	if err := a.client.List(t.Context(), bindings); err != nil || len(bindings.Items) != 1 {
		t.Fatalf("got %v, %v", bindings.Items, err)
	}
	binding := bindings.Items[0]
	if binding.Namespace != "infra-"+technicalID || len(binding.Subjects) != 1 ||
		binding.Subjects[0].Namespace != technicalID || binding.Subjects[0].Name != worker.ManagerName {
		t.Errorf("got %+v", binding)
	}
}

// Machines go before their network, and only those of this shoot.
func TestMachinesThatAreLeft(t *testing.T) {
	pod := func(namespace string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-m1"}}
	}
	a := actuatorWith(t, pod("infra-"+technicalID), pod("infra-shoot--demo--two"))
	if err := a.deleteMachines(t.Context(), technicalID); err != nil {
		t.Fatal(err)
	}
	pods := &corev1.PodList{}
	if err := a.client.List(t.Context(), pods); err != nil || len(pods.Items) != 1 ||
		pods.Items[0].Namespace != "infra-shoot--demo--two" {
		t.Errorf("got %v, %v", pods.Items, err)
	}
}

// What others read of the network: gardenlet the nodes' range and the addresses that packets come from, the Worker
// the rest.
func TestStatus(t *testing.T) {
	a, object := actuatorWith(t), infrastructureOf("")
	outputs := map[string]json.RawMessage{
		"network": json.RawMessage(`{"name":"n","cidr":"10.180.1.0/24","gateway":"10.180.1.1","bridge":"b1",` +
			`"egressCIDR":"172.18.0.2/32"}`),
	}
	if err := a.setStatus(object, outputs); err != nil {
		t.Fatal(err)
	}
	status, err := apis.Decode[apis.InfrastructureStatus](object.Status.ProviderStatus)
	network := apis.Network{Name: "n", CIDR: "10.180.1.0/24", Gateway: "10.180.1.1", Bridge: "b1"}
	if err != nil || status.Namespace != "infra-"+technicalID ||
		!slices.Equal(status.Nameservers, []string{"172.18.0.2"}) || status.Network != network {
		t.Errorf("got %+v, %v", status, err)
	}
	if *object.Status.NodesCIDR != "10.180.1.0/24" ||
		!slices.Equal(object.Status.EgressCIDRs, []string{"172.18.0.2/32"}) ||
		!slices.Equal(object.Status.Networking.Nodes, []string{"10.180.1.0/24"}) {
		t.Errorf("got %+v", object.Status)
	}
	if err := a.setStatus(object, nil); err == nil || !strings.Contains(err.Error(), `Terraform's output "network"`) {
		t.Errorf("got %v", err)
	}
}

// A shoot that moves takes Terraform's state along, and leaves nothing that would destroy its network when the object
// here is deleted.
func TestTheStateMoves(t *testing.T) {
	old, object := actuatorWith(t), infrastructureOf("")
	runner, err := old.runner(t.Context(), logr.Discard(), object)
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.RestoreState(t.Context(), []byte(`{"serial":7}`)); err != nil {
		t.Fatal(err)
	}
	if err := old.Migrate(t.Context(), logr.Discard(), object, nil); err != nil {
		t.Fatal(err)
	}
	if state, err := runner.State(t.Context()); err != nil || len(state) > 0 {
		t.Errorf("left behind: %s, %v", state, err)
	}
	arrived := actuatorWith(t)
	// There is no Terraform here; the state is stored before it is needed.
	if err := arrived.Restore(t.Context(), logr.Discard(), object, nil); err == nil ||
		!strings.Contains(err.Error(), "/no/such/terraform") {
		t.Errorf("got %v", err)
	}
	there, err := arrived.runner(t.Context(), logr.Discard(), object)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := there.State(t.Context()); err != nil || string(state) != `{"serial":7}` {
		t.Errorf("got %s, %v", state, err)
	}
}

// A shoot that never had a network moves, too.
func TestNothingMoves(t *testing.T) {
	a, object := actuatorWith(t), infrastructureOf("")
	for range 2 {
		if err := a.Migrate(t.Context(), logr.Discard(), object, nil); err != nil || object.Status.State != nil {
			t.Errorf("got %v, %v", object.Status.State, err)
		}
	}
}

// The cloud's answers come back through Terraform as text.
func TestCodesOfTheCloud(t *testing.T) {
	for message, want := range map[string][]gardencorev1beta1.ErrorCode{
		"terraform apply for n/o: Error: local cloud: the token is wrong (401)": {
			gardencorev1beta1.ErrorInfraUnauthenticated,
		},
		"terraform apply for n/o: Error: local cloud: the range is taken (409)": {
			gardencorev1beta1.ErrorConfigurationProblem,
		},
		"terraform apply for n/o: Error: local cloud: range: is no network (400)": {
			gardencorev1beta1.ErrorConfigurationProblem,
		},
		"terraform apply for n/o: Error: local cloud: something broke (500)":            nil,
		"terraform init for n/o: fork/exec /usr/local/bin/terraform: no such file":      nil,
		"terraform apply for n/o: Error: connection to 10.0.0.1:401 refused, 401 tries": nil,
	} {
		if got := extension.Codes(api.WithCodes(errors.New(message))); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", message, got)
		}
	}
	if api.WithCodes(nil) != nil {
		t.Error("a success is an error")
	}
}
