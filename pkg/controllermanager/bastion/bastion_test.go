package bastion

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
)

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newBastion(expires time.Duration) *operationsv1alpha1.Bastion {
	return &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: "door", UID: "1", CreationTimestamp: metav1.NewTime(created),
		},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef: corev1.LocalObjectReference{Name: "member1"}, SeedName: new("a"),
		},
		Status: operationsv1alpha1.BastionStatus{ExpirationTimestamp: &metav1.Time{Time: created.Add(expires)}},
	}
}

func newShoot(seed string) *gardencorev1beta1.Shoot {
	return &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"},
		Spec:       gardencorev1beta1.ShootSpec{SeedName: &seed},
	}
}

func TestExpiry(t *testing.T) {
	leaving := newShoot("a")
	leaving.DeletionTimestamp = &metav1.Time{Time: created}
	tests := map[string]struct {
		expires time.Duration
		shoot   *gardencorev1beta1.Shoot
		age     time.Duration
		reason  string
		end     time.Duration
	}{
		"in use":         {time.Hour, newShoot("a"), 30 * time.Minute, "", time.Hour},
		"not kept alive": {time.Hour, newShoot("a"), time.Hour, "kept alive", 24 * time.Hour},
		"kept alive too long": {
			25 * time.Hour, newShoot("a"), 24 * time.Hour, "maximum lifetime of 24h", 24 * time.Hour,
		},
		"the end comes earlier": {25 * time.Hour, newShoot("a"), 23 * time.Hour, "", 24 * time.Hour},
		"no shoot":              {time.Hour, nil, 0, "goes away", 24 * time.Hour},
		"shoot in deletion":     {time.Hour, leaving, 0, "goes away", 24 * time.Hour},
		"shoot that moved":      {time.Hour, newShoot("b"), 0, "another seed", 24 * time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reason, end := expiry(newBastion(test.expires), test.shoot, DefaultMaxLifetime, created.Add(test.age))
			if (reason == "") != (test.reason == "") || !strings.Contains(reason, test.reason) ||
				end.Sub(created) != test.end {
				t.Errorf("expiry = %q at %s, want %q at %s", reason, end.Sub(created), test.reason, test.end)
			}
		})
	}
}

func TestBastionIsDeleted(t *testing.T) {
	ctx := context.Background()
	bastion, now := newBastion(time.Hour), created.Add(59*time.Minute)
	r := &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(bastion,
			newShoot("a")).Build(),
		MaxLifetime: DefaultMaxLifetime, Now: func() time.Time { return now },
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(bastion)}
	if result, err := r.Reconcile(ctx, request); err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("result = %+v, %v; want it to come back in a minute", result, err)
	}
	now = created.Add(time.Hour)
	if _, err := r.Reconcile(ctx, request); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(ctx, request.NamespacedName, bastion); !apierrors.IsNotFound(err) {
		t.Errorf("bastion: %v, want it to be gone", err)
	}
}
