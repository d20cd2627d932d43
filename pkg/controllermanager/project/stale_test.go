package project

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var founded = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func days(n int) time.Time { return founded.Add(time.Duration(n) * day) }

func TestAge(t *testing.T) {
	stamp := func(n int) *metav1.Time {
		if n < 0 {
			return nil
		}
		return &metav1.Time{Time: days(n)}
	}
	tests := map[string]struct {
		inUse             bool
		active            int // day of the last activity; -1 for none
		since, autoDelete int // before; -1 for none
		today             int
		wantSince         int
		wantAutoDelete    int
		expired           bool
	}{
		"young":                    {false, -1, -1, -1, 29, -1, -1, false},
		"old enough":               {false, -1, -1, -1, 30, 30, -1, false},
		"active not long ago":      {false, 80, -1, -1, 100, -1, -1, false},
		"in use":                   {true, -1, 30, 120, 100, -1, -1, false},
		"active again":             {false, 99, 30, 120, 100, -1, -1, false},
		"unused for a while":       {false, -1, 30, -1, 43, 30, -1, false},
		"announced":                {false, -1, 30, -1, 44, 30, 120, false},
		"before the day":           {false, -1, 30, 120, 119, 30, 120, false},
		"the day has come":         {false, -1, 30, 120, 120, 30, 120, true},
		"put off by the operators": {false, -1, 30, 300, 299, 30, 300, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			project := &gardencorev1beta1.Project{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(founded)},
			}
			project.Status = gardencorev1beta1.ProjectStatus{
				LastActivityTimestamp: stamp(test.active), StaleSinceTimestamp: stamp(test.since),
				StaleAutoDeleteTimestamp: stamp(test.autoDelete),
			}
			expired := age(project, test.inUse, DefaultStaleOptions(), days(test.today))
			status := project.Status
			if expired != test.expired || !ptr.Equal(status.StaleSinceTimestamp, stamp(test.wantSince)) ||
				!ptr.Equal(status.StaleAutoDeleteTimestamp, stamp(test.wantAutoDelete)) {
				t.Errorf("expired %t, stale since %v, deleted at %v", expired, status.StaleSinceTimestamp,
					status.StaleAutoDeleteTimestamp)
			}
		})
	}
}

func TestInUse(t *testing.T) {
	inside, outside := "garden-demo", "garden-other"
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	shoot := func(namespace string, spec gardencorev1beta1.ShootSpec) *gardencorev1beta1.Shoot {
		return &gardencorev1beta1.Shoot{ObjectMeta: meta(namespace, "member1"), Spec: spec}
	}
	binding := func(namespace, secrets, quotas string) *securityv1alpha1.CredentialsBinding {
		return &securityv1alpha1.CredentialsBinding{
			ObjectMeta:     meta(namespace, "b"),
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secrets, Name: "s"},
			Quotas:         []corev1.ObjectReference{{Namespace: quotas, Name: "q"}},
		}
	}
	users := gardencorev1beta1.ShootSpec{CredentialsBindingName: new("b")}
	tests := map[string]struct {
		objects []client.Object
		want    bool
	}{
		"empty":             {nil, false},
		"a shoot":           {[]client.Object{shoot(inside, gardencorev1beta1.ShootSpec{})}, true},
		"a shoot elsewhere": {[]client.Object{shoot(outside, gardencorev1beta1.ShootSpec{})}, false},
		"a backup": {
			[]client.Object{&gardencorev1beta1.BackupEntry{ObjectMeta: meta(inside, "e")}}, true,
		},
		"credentials for others": {
			[]client.Object{binding(outside, inside, outside), shoot(outside, users)}, true,
		},
		"a quota for others": {
			[]client.Object{binding(outside, outside, inside), shoot(outside, users)}, true,
		},
		"credentials that nobody uses": {
			[]client.Object{binding(outside, inside, inside), shoot(outside, gardencorev1beta1.ShootSpec{})}, false,
		},
		"secret binding for others": {
			[]client.Object{
				&gardencorev1beta1.SecretBinding{
					ObjectMeta: meta(outside, "b"), SecretRef: corev1.SecretReference{Namespace: inside},
				}, shoot(outside, gardencorev1beta1.ShootSpec{
					SecretBindingName: new("b"),
				}),
			}, true,
		},
		"a binding of the other kind": {
			[]client.Object{
				binding(outside, inside, inside),
				shoot(outside, gardencorev1beta1.ShootSpec{SecretBindingName: new("b")}),
			}, false,
		},
		"the operators want it to be kept": {
			[]client.Object{
				&corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{Name: inside, Annotations: map[string]string{skipStaleCheck: "true"}},
				},
			}, true,
		},
		"the namespace is just as it should": {
			[]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inside}}}, false,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &StaleReconciler{
				Client: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(test.objects...).Build(),
			}
			got, err := r.inUse(context.Background(),
				&gardencorev1beta1.Project{Spec: gardencorev1beta1.ProjectSpec{Namespace: &inside}})
			if err != nil || got != test.want {
				t.Errorf("in use = %t, %v; want %t", got, err, test.want)
			}
		})
	}
}

func TestUnusedProjectIsDeleted(t *testing.T) {
	ctx := context.Background()
	project := &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", CreationTimestamp: metav1.NewTime(founded)},
		Spec:       gardencorev1beta1.ProjectSpec{Namespace: new("garden-demo")},
	}
	now := founded
	r := &StaleReconciler{
		Client: fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithObjects(project).WithStatusSubresource(project).Build(),
		Options: DefaultStaleOptions(), Now: func() time.Time { return now },
	}
	for _, today := range []int{0, 31, 50, 121} {
		now = days(today)
		result, err := r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(project)})
		if err != nil || result.RequeueAfter != r.Options.SyncPeriod {
			t.Fatalf("day %d: result %+v, %v", today, result, err)
		}
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(project), project); !apierrors.IsNotFound(err) {
		t.Errorf("project: %v, want it to be gone", err)
	}
}

func TestActivity(t *testing.T) {
	ctx := context.Background()
	project := &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: gardencorev1beta1.ProjectSpec{Namespace: new("garden-demo")},
	}
	now := founded
	r := &ActivityReconciler{
		Client: fake.NewClientBuilder().
			WithScheme(apis.GardenScheme()).WithObjects(project).WithStatusSubresource(project).Build(),
		Now: func() time.Time { return now },
	}
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: "member1", CreationTimestamp: metav1.NewTime(founded),
		},
	}
	for _, step := range []struct{ after, want time.Duration }{
		{0, 0}, {time.Minute, 0}, {6 * time.Minute, 6 * time.Minute},
	} {
		now = founded.Add(step.after)
		for _, request := range r.projectOf(ctx, shoot) {
			if _, err := r.Reconcile(ctx, request); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(project), project); err != nil {
			t.Fatal(err)
		}
		if last := project.Status.LastActivityTimestamp; last == nil || !last.Time.Equal(founded.Add(step.want)) {
			t.Errorf("after %s: last activity %v, want %s", step.after, last, founded.Add(step.want))
		}
	}

	filter := activity(func() time.Time { return founded.Add(2 * time.Hour) })
	if filter.Create(event.CreateEvent{Object: shoot}) {
		t.Error("an old shoot that is seen for the first time counts as an activity")
	}
	changed := shoot.DeepCopy()
	if filter.Update(event.UpdateEvent{ObjectOld: shoot, ObjectNew: changed}) {
		t.Error("a change of the status counts as an activity")
	}
	changed.Generation = 2
	if !filter.Update(event.UpdateEvent{ObjectOld: shoot, ObjectNew: changed}) ||
		!filter.Delete(event.DeleteEvent{Object: shoot}) {
		t.Error("a change of the specification, or the deletion, does not count as an activity")
	}
}
