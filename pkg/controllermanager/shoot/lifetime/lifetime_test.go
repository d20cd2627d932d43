package lifetime

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newShoot(expiration string) *gardencorev1beta1.Shoot {
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-trial", Name: "member1", CreationTimestamp: metav1.NewTime(created),
		},
		Spec: gardencorev1beta1.ShootSpec{CredentialsBindingName: new("local")},
	}
	if expiration != "" {
		shoot.Annotations = map[string]string{gardencorev1beta1.ShootExpirationTimestamp: expiration}
	}
	return shoot
}

func quota(days *int32) gardencorev1beta1.Quota {
	return gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "trial"},
		Spec:       gardencorev1beta1.QuotaSpec{ClusterLifetimeDays: days},
	}
}

func TestExpiration(t *testing.T) {
	tests := map[string]struct {
		annotation string
		quotas     []gardencorev1beta1.Quota
		want       string
	}{
		"no quota":    {"", nil, ""},
		"no lifetime": {"2026-11-02T00:00:00Z", []gardencorev1beta1.Quota{quota(nil)}, ""},
		"the shortest": {
			"", []gardencorev1beta1.Quota{quota(new(int32(14))), quota(new(int32(7))), quota(nil)},
			"2026-11-08T12:00:00Z",
		},
		"put off by the operator": {
			"2026-12-24T00:00:00Z", []gardencorev1beta1.Quota{quota(new(int32(7)))}, "2026-12-24T00:00:00Z",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			expiration, limited, err := Expiration(newShoot(test.annotation), test.quotas)
			got := ""
			if limited {
				got = expiration.Format(time.RFC3339)
			}
			if err != nil || got != test.want {
				t.Errorf("expiration = %q, %v; want %q", got, err, test.want)
			}
		})
	}
	if _, _, err := Expiration(newShoot("soon"), []gardencorev1beta1.Quota{quota(new(int32(7)))}); err == nil ||
		!strings.Contains(err.Error(), gardencorev1beta1.ShootExpirationTimestamp) {
		t.Errorf("error = %v, want it to name the annotation", err)
	}
}

func TestShootIsDeletedWhenItsTimeIsUp(t *testing.T) {
	ctx := context.Background()
	shoot, trial := newShoot(""), quota(new(int32(7)))
	binding := &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-trial", Name: "local"},
		Quotas:     []corev1.ObjectReference{{Namespace: "garden", Name: "trial"}, {Namespace: "garden", Name: "gone"}},
	}
	now, recorder := created, events.NewFakeRecorder(10)
	r := &Reconciler{
		Client:   fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(shoot, binding, &trial).Build(),
		Recorder: recorder, SyncPeriod: time.Hour, Now: func() time.Time { return now },
	}
	round := func() (reconcile.Result, error) {
		return r.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
	}
	if result, err := round(); err != nil || result.RequeueAfter != time.Hour {
		t.Fatalf("result = %+v, %v", result, err)
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	if got := shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp]; got != "2026-11-08T12:00:00Z" {
		t.Errorf("expires at %q", got)
	}
	now = created.Add(7*day - time.Minute)
	if result, err := round(); err != nil || result.RequeueAfter != time.Minute {
		t.Fatalf("result = %+v, %v; want it to come back in a minute", result, err)
	}
	now = created.Add(7 * day)
	if _, err := round(); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); !apierrors.IsNotFound(err) {
		t.Errorf("shoot: %v, want it to be gone", err)
	}
	if event := <-recorder.Events; !strings.Contains(event, "2026-11-08T12:00:00Z") {
		t.Errorf("event = %q", event)
	}
}
