package worker

import (
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestHibernate(t *testing.T) {
	now := time.Now()
	tests := map[string]struct {
		// deleted is for how long a machine is on its way out; nil without a machine.
		deleted  *time.Duration
		observed int64
		want     string
		forced   bool
	}{
		"no machines":            {nil, 1, "", false},
		"not yet seen":           {nil, 0, "not yet seen by machine-controller-manager", false},
		"a machine drains":       {new(time.Minute), 1, "1 machines are left, first m", false},
		"a machine drains stuck": {new(time.Hour), 1, "1 machines are left, first m", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			_, _ = appsv1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme)
			manager := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: ManagerName},
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
			}
			deployment := &machinev1alpha1.MachineDeployment{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", Generation: 1},
			}
			deployment.Status.ObservedGeneration = test.observed
			objects := []client.Object{manager, deployment}
			if test.deleted != nil {
				objects = append(objects, &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "m", DeletionTimestamp: new(metav1.NewTime(now.Add(-*test.deleted))),
					Finalizers: []string{"mcm"},
				}})
			}
			a := &actuator{
				client:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
				options: Options{PollInterval: time.Millisecond, ReadyTimeout: 20 * time.Millisecond},
			}
			err := a.hibernate(t.Context(), "ns", []Deployment{{Name: "d"}})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q", err, test.want)
			}
			if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(manager), manager); err != nil {
				t.Fatal(err)
			}
			if stopped := *manager.Spec.Replicas == 0; stopped != (test.want == "") {
				t.Errorf("machine-controller-manager is stopped: %v", stopped)
			}
			machines := &machinev1alpha1.MachineList{}
			if err := a.client.List(t.Context(), machines); err != nil {
				t.Fatal(err)
			}
			for _, machine := range machines.Items {
				if forced := machine.Labels[labelForceDeletion] == "True"; forced != test.forced {
					t.Errorf("the machine is deleted by force: %v, want %v", forced, test.forced)
				}
			}
		})
	}
}

func TestReleaseSecrets(t *testing.T) {
	scheme := runtime.NewScheme()
	_ = corev1.AddToScheme(scheme)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "cloudprovider",
			Finalizers: []string{"machine.sapcloud.io/machine-controller", "mine"},
		},
	}
	a := &actuator{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(secret).Build()}
	if err := a.releaseSecrets(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	if err := a.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil ||
		len(secret.Finalizers) != 1 || secret.Finalizers[0] != "mine" {
		t.Errorf("finalizers are %v, %v", secret.Finalizers, err)
	}
}
