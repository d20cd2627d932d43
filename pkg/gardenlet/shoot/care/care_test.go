package care

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

var now = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func TestSoften(t *testing.T) {
	condition := func(status gardencorev1beta1.ConditionStatus, age time.Duration) *gardencorev1beta1.Condition {
		return &gardencorev1beta1.Condition{Status: status, LastTransitionTime: metav1.NewTime(now.Add(-age))}
	}
	operation := func(t gardencorev1beta1.LastOperationType, s gardencorev1beta1.LastOperationState,
		age time.Duration) *gardencorev1beta1.LastOperation {
		return &gardencorev1beta1.LastOperation{Type: t, State: s, LastUpdateTime: metav1.NewTime(now.Add(-age))}
	}
	long := operation("Reconcile", "Succeeded", time.Hour)
	for _, test := range []struct {
		name      string
		previous  *gardencorev1beta1.Condition
		last      *gardencorev1beta1.LastOperation
		threshold time.Duration
		want      gardencorev1beta1.ConditionStatus
	}{
		{"no threshold", condition("True", time.Hour), long, 0, "False"},
		{"was True", condition("True", time.Hour), long, time.Minute, "Progressing"},
		{"progressing for a short time", condition("Progressing", 30*time.Second), long, time.Minute, "Progressing"},
		{"progressing for too long", condition("Progressing", 2*time.Minute), long, time.Minute, "False"},
		{"stays False", condition("False", time.Second), long, time.Minute, "False"},
		{
			"an operation has just ended", condition("False", time.Hour),
			operation("Reconcile", "Succeeded", time.Second), time.Minute, "Progressing",
		},
		{"being created", nil, operation("Create", "Processing", time.Second), 0, "Progressing"},
	} {
		found := gardencorev1beta1.Condition{Status: gardencorev1beta1.ConditionFalse}
		if got := soften(found, test.previous, test.last, test.threshold, now.Time).Status; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestNextLook(t *testing.T) {
	for _, test := range []struct {
		name      string
		condition gardencorev1beta1.Condition
		want      time.Duration
	}{
		{"well", gardencorev1beta1.Condition{Status: "True", LastTransitionTime: now}, time.Minute},
		{
			"has just turned", gardencorev1beta1.Condition{
				Status: "Progressing", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute)),
			}, soon,
		},
		{
			"has been bad for long", gardencorev1beta1.Condition{
				Status: "False", LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
			}, time.Minute,
		},
	} {
		shoot := &gardencorev1beta1.Shoot{
			Status: gardencorev1beta1.ShootStatus{Conditions: []gardencorev1beta1.Condition{test.condition}},
		}
		if got := nextLook(shoot, time.Minute, now.Time); got != test.want {
			t.Errorf("%s: next look in %s, want %s", test.name, got, test.want)
		}
	}
}

func TestEveryNodeReady(t *testing.T) {
	workers := []gardencorev1beta1.Worker{{Name: "a", Minimum: 1}}
	node := func(status corev1.ConditionStatus) corev1.Node {
		return corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{gardencorev1beta1.LabelWorkerPool: "a"}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Message: "CNI"}},
			},
		}
	}
	for _, test := range []struct {
		nodes  []corev1.Node
		reason string
	}{
		{nil, "MissingNodes"},
		{[]corev1.Node{node(corev1.ConditionFalse)}, "KubeletNotReady"},
		{[]corev1.Node{node(corev1.ConditionTrue)}, "EveryNodeReady"},
	} {
		if got := everyNodeReady(workers, test.nodes); got.Reason != test.reason {
			t.Errorf("got %+v, want %s", got, test.reason)
		}
	}
}

func TestSleepingShootsAreHealthy(t *testing.T) {
	for _, test := range []struct {
		workerless, backedUp bool
		want                 int
	}{{true, false, 3}, {false, false, 4}, {false, true, 5}} {
		found := append(asleepConditions(test.workerless, test.backedUp), asleepConstraints()...)
		if len(found) != test.want+3 {
			t.Errorf("got %d conditions and constraints", len(found))
		}
		for _, condition := range found {
			if condition.Status != gardencorev1beta1.ConditionTrue ||
				condition.Message != "Shoot cluster has been hibernated." {
				t.Errorf("got %+v", condition)
			}
		}
	}
}

func TestTokensThatAreNotRenewedAreSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := addHealthSchemes(scheme); err != nil {
		t.Fatal(err)
	}
	care := &Reconciler{
		Seed:         healthyControlPlane(scheme, "ns"),
		TokenProblem: func(namespace string) string { return "Secret cloudprovider in " + namespace },
	}
	condition := care.controlPlane(t.Context(), "ns", &gardencorev1beta1.ShootSpec{}, nil)
	if condition.Status != gardencorev1beta1.ConditionFalse || condition.Reason != "WorkloadIdentityTokenNotRenewed" ||
		!strings.Contains(condition.Message, "cloudprovider in ns") {
		t.Errorf("condition is %+v", condition)
	}
	care.TokenProblem = func(string) string { return "" }
	if condition := care.controlPlane(t.Context(), "ns", &gardencorev1beta1.ShootSpec{},
		nil); condition.Status != gardencorev1beta1.ConditionTrue {
		t.Errorf("condition is %+v", condition)
	}
}

// addHealthSchemes adds the kinds by which the health of a control plane is judged.
func addHealthSchemes(scheme *runtime.Scheme) error {
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	return resourcesv1alpha1.AddToScheme(scheme)
}

// healthyControlPlane is a seed with what a workerless control plane needs.
func healthyControlPlane(scheme *runtime.Scheme, namespace string) client.Client {
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, name := range []string{"etcd-main", "etcd-events"} {
		builder.WithObjects(&appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(1))},
			Status:     appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1},
		})
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager"} {
		builder.WithObjects(&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{
				Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
			},
		})
	}
	return builder.Build()
}
