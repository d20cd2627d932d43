package registry

import (
	"context"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

func withOperation(operation string) map[string]string {
	return map[string]string{gardencorev1beta1.GardenerOperation: operation}
}

func TestBastionLives(t *testing.T) {
	born := time.Unix(1700000000, 0)
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{gardencorev1beta1.GardenerCreatedBy: "mallory"}},
	}
	prepareBastion(apirequest.WithUser(context.Background(), &user.DefaultInfo{Name: "alice"}), bastion)
	if bastion.Annotations[gardencorev1beta1.GardenerCreatedBy] != "alice" ||
		bastion.Status.LastHeartbeatTimestamp == nil || bastion.Status.ExpirationTimestamp == nil {
		t.Errorf("a new bastion is %+v", bastion)
	}

	heartbeat(bastion, born)
	keepAlive(bastion, born.Add(time.Minute))
	if bastion.Status.LastHeartbeatTimestamp.Time != born {
		t.Error("it is kept alive though nobody asked")
	}
	bastion.Annotations = withOperation(gardencorev1beta1.GardenerOperationKeepalive)
	keepAlive(bastion, born.Add(time.Minute))
	if len(bastion.Annotations) > 0 || bastion.Status.ExpirationTimestamp.Time != born.Add(time.Minute+time.Hour) {
		t.Errorf("after keepalive: %v, expires %s", bastion.Annotations, bastion.Status.ExpirationTimestamp)
	}

	changed := bastion.DeepCopy()
	changed.Status.ExpirationTimestamp = new(metav1.NewTime(born.Add(100 * time.Hour)))
	changed.Status.LastHeartbeatTimestamp = nil
	setBastionExpiration(changed, bastion)
	if !changed.Status.ExpirationTimestamp.Equal(bastion.Status.ExpirationTimestamp) {
		t.Errorf("the expiration has been chosen: %s", changed.Status.ExpirationTimestamp)
	}
}

func TestBastionColumns(t *testing.T) {
	now := time.Unix(1700000000, 0)
	row := func(bastion *operationsv1alpha1.Bastion) string {
		var cells []string
		for _, column := range bastionColumns(func() time.Time { return now }) {
			cells = append(cells, column.Cell(bastion).(string))
		}
		return strings.Join(cells, " | ")
	}
	bastion := &operationsv1alpha1.Bastion{
		Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "member1"}},
	}
	if got, want := row(bastion), "member1 | <pending> | <pending> | <never> | <pending>"; got != want {
		t.Errorf("row = %s, want %s", got, want)
	}
	bastion.Spec.SeedName = new("local")
	bastion.Status.Ingress = &corev1.LoadBalancerIngress{IP: "192.0.2.1"}
	heartbeat(bastion, now.Add(-time.Minute))
	if got, want := row(bastion), "member1 | local | 192.0.2.1 | 60s ago | 59m"; got != want {
		t.Errorf("row = %s, want %s", got, want)
	}
	heartbeat(bastion, now.Add(-2*time.Hour))
	if got := row(bastion); !strings.HasSuffix(got, "<expired>") {
		t.Errorf("row = %s", got)
	}
}

func TestOperationsMakeGenerations(t *testing.T) {
	kind := gardenlets().(*Kind[*seedmanagementv1alpha1.Gardenlet])
	for name, test := range map[string]struct {
		operation string
		change    bool
		want      bool
		left      string
	}{
		"nothing":        {"", false, false, ""},
		"specification":  {"", true, true, ""},
		"reconcile":      {"reconcile", false, true, ""},
		"force-redeploy": {"force-redeploy", false, true, "force-redeploy"},
		"something else": {"keepalive", false, false, "keepalive"},
	} {
		old := &seedmanagementv1alpha1.Gardenlet{}
		gardenlet := &seedmanagementv1alpha1.Gardenlet{
			ObjectMeta: metav1.ObjectMeta{Annotations: withOperation(test.operation)},
		}
		if test.change {
			gardenlet.Spec.Deployment.ReplicaCount = new(int32(3))
		}
		if got := kind.NeedsNewGeneration(gardenlet, old); got != test.want ||
			gardenlet.Annotations[gardencorev1beta1.GardenerOperation] != test.left {
			t.Errorf("%s: %v, left %v", name, got, gardenlet.Annotations)
		}
	}
}

func TestSubjectIsGivenByTheServer(t *testing.T) {
	identity := &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", GenerateName: "aws-"},
	}
	identity.Status.Sub = "admin"
	setSubject(identity)
	if want := "gardener.cloud:workloadidentity:garden-demo:" + identity.Name + ":" +
		string(identity.UID); identity.Status.Sub != want || !strings.HasPrefix(identity.Name, "aws-") ||
		identity.UID == "" {
		t.Errorf("sub = %s, want %s", identity.Status.Sub, want)
	}
}

func TestFieldsOfControllerDeployments(t *testing.T) {
	deployment := func(kind, config string) *gardencorev1beta1.ControllerDeployment {
		return &gardencorev1beta1.ControllerDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: "extension", ResourceVersion: "1"}, Type: kind,
			ProviderConfig: runtime.RawExtension{Raw: []byte(config)},
		}
	}
	for config, want := range map[string]string{
		`{"chart":"Zm9v"}`:                     "",
		`{}`:                                   "providerConfig.chart",
		`{"chart":"Zm9v","ociRepository":{}}`:  "providerConfig.ociRepository",
		`{"chart":"Zm9v","values":{"a":"{{"}}`: "providerConfig.values.a",
	} {
		errs := validateControllerDeployment(deployment("helm", config))
		if want == "" && len(errs) > 0 || want != "" && (len(errs) != 1 || errs[0].Field != want) {
			t.Errorf("%s: %v, want %s", config, errs, want)
		}
	}
	if errs := validateControllerDeployment(deployment("custom", `{"a":1}`)); len(errs) > 0 {
		t.Errorf("another type is refused: %v", errs)
	}
	// what was stored by a more lenient server can be deleted
	if errs := validateControllerDeploymentUpdate(deployment("helm", `{}`), deployment("helm", `{}`)); len(errs) > 0 {
		t.Errorf("metadata cannot be changed: %v", errs)
	}
}

func TestScaleChangesNothingElse(t *testing.T) {
	set := &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "europe", UID: "1", ResourceVersion: "5"},
	}
	set.Spec.Replicas, set.Spec.Selector.MatchLabels, set.Status.Replicas = new(int32(2)),
		map[string]string{"tier": "seeds"}, 1
	scale, err := scaleOf(set)
	if err != nil || scale.Spec.Replicas != 2 || scale.Status.Replicas != 1 || scale.Status.Selector != "tier=seeds" {
		t.Fatalf("scale = %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 3
	updated, err := scaledInfo{rest.DefaultUpdatedObjectInfo(scale)}.UpdatedObject(context.Background(), set)
	if err != nil {
		t.Fatal(err)
	}
	want := set.DeepCopy()
	want.Spec.Replicas = new(int32(3))
	if !apiequality.Semantic.DeepEqual(updated, want) || *set.Spec.Replicas != 2 {
		t.Errorf("scaled = %+v, want %+v", updated, want)
	}
	other := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "europe", UID: "0"}}
	if _, err := (scaledInfo{rest.DefaultUpdatedObjectInfo(other)}).UpdatedObject(context.Background(),
		set); !apierrors.IsConflict(err) {
		t.Errorf("a scale of a set that is gone: %v", err)
	}
}
