package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/rotation"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

func TestTrustedCertificates(t *testing.T) {
	p := plantest.New(t, func(in *plan.Inputs) {
		in.CloudProfile.Spec.CABundle = new("PROFILE\n")
		in.Shoot.Spec.Provider.Workers[0].CABundle = new("\nPOOL")
	}).Pools[0]
	if p.TrustedCertificates != "PROFILE\nPOOL\n" {
		t.Errorf("certificates are %q", p.TrustedCertificates)
	}
}

// The key of a pool that is updated in place stays; what machines are drained for has a hash, which changes with what
// other pools get new machines for.
func TestPoolsThatAreUpdatedInPlace(t *testing.T) {
	inPlace := func(change ...func(*plan.Inputs)) plan.Pool {
		settings := func(in *plan.Inputs) { in.Shoot.Spec.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{} }
		strategy := plantest.Worker(func(w *gardencorev1beta1.Worker) {
			w.UpdateStrategy = new(gardencorev1beta1.AutoInPlaceUpdate)
		})
		return plantest.New(t, append([]func(*plan.Inputs){settings, strategy}, change...)...).Pools[0]
	}
	version := func(v string) func(*plan.Inputs) {
		return func(in *plan.Inputs) { in.Shoot.Spec.Kubernetes.Version = v }
	}
	before := inPlace()
	for name, test := range map[string]struct {
		change func(*plan.Inputs)
		drains bool
	}{
		"patch": {version("1.36.9"), false},
		"minor": {version("1.35.4"), true},
		"reserved": {func(in *plan.Inputs) {
			in.Shoot.Spec.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{CPUManagerPolicy: new("static")}
		}, true},
		"pods": {func(in *plan.Inputs) {
			in.Shoot.Spec.Kubernetes.Kubelet = &gardencorev1beta1.KubeletConfig{MaxPods: new(int32(50))}
		}, false},
		"rotation": {func(in *plan.Inputs) {
			rotation.Begin(in.Shoot, []string{gardencorev1beta1.OperationRotateCAStart},
				metav1.Unix(1_800_000_000, 0))(&in.Shoot.Status)
		}, true},
		"rotation without its machines": {func(in *plan.Inputs) {
			rotation.Begin(in.Shoot, []string{gardencorev1beta1.OperationRotateCAStartWithoutWorkersRollout},
				metav1.Unix(1_800_000_000, 0))(&in.Shoot.Status)
		}, false},
	} {
		after := inPlace(test.change)
		if drains := after.InPlace.Hash != before.InPlace.Hash; drains != test.drains ||
			after.SecretName != "gardener-node-agent-pool" {
			t.Errorf("%s: %v in %s", name, after.InPlace, after.SecretName)
		}
		if (after.InPlace.AuthoritiesInitiated != nil) != (name == "rotation") {
			t.Errorf("%s: authorities of %v", name, after.InPlace.AuthoritiesInitiated)
		}
	}
	if replaced := plantest.New(t).Pools[0]; replaced.InPlace != nil {
		t.Errorf("a pool whose machines are replaced: %v", replaced.InPlace)
	}
}
