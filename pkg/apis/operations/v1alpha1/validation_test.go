package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const aPublicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKWK1GmoSqJSUMRlZQgRRS8zA6HcXEFpZfNTlTV4G2Jr me@example.com"

func aBastion() *Bastion {
	return &Bastion{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden-demo", Name: "cli-1", ResourceVersion: "1",
			Annotations: map[string]string{"gardener.cloud/created-by": "alice"},
		},
		Spec: BastionSpec{
			ShootRef:     corev1.LocalObjectReference{Name: "member1"},
			SSHPublicKey: aPublicKey,
			Ingress:      []BastionIngressPolicy{{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}}},
		},
	}
}

func TestValidateBastion(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*Bastion)
		field, message string
	}{
		"as it is": {func(*Bastion) {}, "", ""},
		"no shoot": {func(b *Bastion) { b.Spec.ShootRef.Name = "" }, "spec.shootRef.name", "Shoot"},
		"no key":   {func(b *Bastion) { b.Spec.SSHPublicKey = "" }, "spec.sshPublicKey", "authorized_keys"},
		"bad key": {
			func(b *Bastion) { b.Spec.SSHPublicKey = "ssh-rsa AAAA" }, "spec.sshPublicKey", "authorized_keys",
		},
		"no ingress": {func(b *Bastion) { b.Spec.Ingress = nil }, "spec.ingress", "203.0.113.7/32"},
		"no range": {
			func(b *Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "" }, "spec.ingress[0].ipBlock.cidr", "Required",
		},
		"bad range": {
			func(b *Bastion) { b.Spec.Ingress[0].IPBlock.CIDR = "10.0.0.1" }, "spec.ingress[0].ipBlock.cidr", "CIDR",
		},
		"bad except": {
			func(b *Bastion) { b.Spec.Ingress[0].IPBlock.Except = []string{"x"} }, "spec.ingress[0].ipBlock.except[0]",
			"CIDR",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bastion := aBastion()
			test.change(bastion)
			expectError(t, ValidateBastion(bastion), test.field, test.message)
		})
	}
}

func TestValidateBastionUpdate(t *testing.T) {
	for path, change := range map[string]func(*Bastion){
		"spec.shootRef.name": func(b *Bastion) { b.Spec.ShootRef.Name = "other" },
		"spec.sshPublicKey":  func(b *Bastion) { b.Spec.SSHPublicKey += "2" },
		"metadata.annotations[gardener.cloud/created-by]": func(b *Bastion) {
			b.Annotations["gardener.cloud/created-by"] = "mallory"
		},
	} {
		bastion := aBastion()
		change(bastion)
		expectError(t, ValidateBastionUpdate(bastion, aBastion()), path, "cannot be changed")
	}
}

func TestValidateBastionStatusUpdate(t *testing.T) {
	now := time.Unix(1000, 0)
	bastion := aBastion()
	expectError(t, ValidateBastionStatusUpdate(bastion, now), "", "")
	bastion.Status.LastHeartbeatTimestamp = new(metav1.NewTime(now))
	expectError(t, ValidateBastionStatusUpdate(bastion, now), "", "")
	bastion.Status.LastHeartbeatTimestamp = new(metav1.NewTime(now.Add(time.Second)))
	expectError(t, ValidateBastionStatusUpdate(bastion, now), "status.lastHeartbeatTimestamp", "future")
}

// Whatever is sent as a Bastion is decoded and validated without a panic.
func FuzzDecodeBastion(f *testing.F) {
	example := aBastion()
	example.APIVersion, example.Kind = SchemeGroupVersion.String(), "Bastion"
	data, err := json.Marshal(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		f.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	f.Fuzz(func(_ *testing.T, data []byte) {
		object, _, err := decoder.Decode(data, nil, nil)
		bastion, ok := object.(*Bastion)
		if err != nil || !ok {
			return
		}
		ValidateBastionUpdate(bastion, aBastion())
		ValidateBastionStatusUpdate(bastion, time.Unix(0, 0))
	})
}

func expectError(t *testing.T, errs field.ErrorList, path, message string) {
	t.Helper()
	switch {
	case path == "" && len(errs) > 0:
		t.Errorf("is refused: %v", errs.ToAggregate())
	case path != "" && (len(errs) != 1 || errs[0].Field != path || !strings.Contains(errs[0].Error(), message)):
		t.Errorf("want %s: …%s…, got %v", path, message, errs)
	}
}
