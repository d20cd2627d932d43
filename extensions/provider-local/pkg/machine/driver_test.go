package machine

import (
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/driver"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/codes"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/machinecodes/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
)

const infra = "infra-shoot--demo--one"

func class() *machinev1alpha1.MachineClass {
	return &machinev1alpha1.MachineClass{
		ObjectMeta: metav1.ObjectMeta{Name: "class"}, Provider: "local",
		ProviderSpec: runtime.RawExtension{Raw: []byte(`{"image":"machine:1","namespace":"` + infra + `"}`)},
	}
}

func m1() *machinev1alpha1.Machine {
	return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "m1"}}
}

func userData(data string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{"userData": []byte(data)}}
}

func codeOf(t *testing.T, err error) codes.Code {
	t.Helper()
	if err == nil {
		return codes.OK
	}
	classified, ok := status.FromError(err)
	if !ok {
		t.Fatalf("%v has no code", err)
	}
	return classified.Code()
}

// The life of a machine, each step repeated as machine-controller-manager does after a crash.
func TestTheLifeOfAMachine(t *testing.T) {
	client := kubernetesfake.NewClientset()
	d := &Driver{Client: client}
	for _, data := range []string{"first", "second"} {
		created, err := d.CreateMachine(t.Context(),
			&driver.CreateMachineRequest{Machine: m1(), MachineClass: class(), Secret: userData(data)})
		if err != nil || created.ProviderID != "local:///"+infra+"/m1" || created.NodeName != "m1" {
			t.Fatalf("got %+v, %v", created, err)
		}
		// The token in it is that of the last try; the one before may have expired.
		secret, err := client.CoreV1().Secrets(infra).Get(t.Context(), "machine-m1", metav1.GetOptions{})
		if err != nil || string(secret.Data[userDataKey]) != data || len(secret.OwnerReferences) != 1 ||
			secret.OwnerReferences[0].Name != "machine-m1" {
			t.Errorf("got %v, %v", secret, err)
		}
	}
	pods, err := client.CoreV1().Pods(infra).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("got %d pods, %v", len(pods.Items), err)
	}
	listed, err := d.ListMachines(t.Context(), &driver.ListMachinesRequest{MachineClass: class()})
	if err != nil || len(listed.MachineList) != 1 || listed.MachineList["local:///"+infra+"/m1"] != "m1" {
		t.Errorf("got %v, %v", listed, err)
	}
	pods.Items[0].Status.PodIP = "10.180.0.7"
	if _, err := client.CoreV1().Pods(infra).UpdateStatus(t.Context(), &pods.Items[0],
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m1(), MachineClass: class()})
	if err != nil || len(got.Addresses) != 1 || got.Addresses[0].Address != "10.180.0.7" {
		t.Errorf("got %+v, %v", got, err)
	}
	for range 2 {
		if _, err := d.DeleteMachine(t.Context(),
			&driver.DeleteMachineRequest{Machine: m1(), MachineClass: class()}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = d.GetMachineStatus(t.Context(), &driver.GetMachineStatusRequest{Machine: m1(), MachineClass: class()})
	if codeOf(t, err) != codes.NotFound {
		t.Errorf("got %v", err)
	}
}

// machine-controller-manager repeats what may succeed later, and gives up on the rest; so the code matters.
func TestWhatIsRefused(t *testing.T) {
	foreign, broken, empty := class(), class(), class()
	foreign.Provider = "aws"
	broken.ProviderSpec.Raw = []byte("{")
	empty.ProviderSpec.Raw = []byte(`{"image":"machine:1"}`)
	for name, test := range map[string]struct {
		class  *machinev1alpha1.MachineClass
		secret *corev1.Secret
		want   codes.Code
	}{
		"a class of another provider": {foreign, userData("x"), codes.InvalidArgument},
		"a class that is no JSON":     {broken, userData("x"), codes.InvalidArgument},
		"a class without a namespace": {empty, userData("x"), codes.InvalidArgument},
		"no user data":                {class(), &corev1.Secret{}, codes.InvalidArgument},
	} {
		client := kubernetesfake.NewClientset()
		_, err := (&Driver{Client: client}).CreateMachine(t.Context(),
			&driver.CreateMachineRequest{Machine: m1(), MachineClass: test.class, Secret: test.secret})
		if codeOf(t, err) != test.want {
			t.Errorf("%s: %v", name, err)
		}
		if pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); err != nil ||
			len(pods.Items) > 0 {
			t.Errorf("%s: %v, %v", name, pods.Items, err)
		}
	}
}

// The former machine of that name is on its way out; its pod must not be taken for the new one.
func TestAFormerMachineIsWaitedFor(t *testing.T) {
	now := metav1.Now()
	client := kubernetesfake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: infra, Name: "machine-m1", DeletionTimestamp: &now, Finalizers: []string{"x"},
		},
	})
	_, err := (&Driver{Client: client}).CreateMachine(t.Context(),
		&driver.CreateMachineRequest{Machine: m1(), MachineClass: class(), Secret: userData("x")})
	if codeOf(t, err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}
