package v1beta1

import (
	"testing"
)

// withPools gives a shoot pools of these maxima.
func withPools(maxima ...int32) func(*Shoot) {
	return func(s *Shoot) {
		s.Spec.Provider.Workers = nil
		for i, maximum := range maxima {
			worker := aWorker(string(rune('a' + i)))
			worker.Minimum, worker.Maximum = 0, maximum
			s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, worker)
		}
		SetDefaultsShoot(s)
	}
}

func TestNodesFitIntoTheRangeOfPods(t *testing.T) {
	const workers = "spec.provider.workers"
	with := func(change func(*Shoot), maxima ...int32) func(*Shoot) {
		return func(s *Shoot) {
			change(s)
			withPools(maxima...)(s)
		}
	}
	masks := func(size int32) func(*Shoot) {
		return func(s *Shoot) { s.Spec.Kubernetes.KubeControllerManager.NodeCIDRMaskSize = new(size) }
	}
	pods := func(cidr *string) func(*Shoot) { return func(s *Shoot) { s.Spec.Networking.Pods = cidr } }
	check(t, []change[*Shoot]{
		{"as many as fit", withPools(256), "", ""},
		{
			"one more", withPools(257), workers + "[0].maximum",
			"may be 257 nodes, and 10.3.0.0/16 has a /24 of pods for 256: lower the maximum",
		},
		{"a million", withPools(1000000), workers + "[0].maximum", "1000000 nodes"},
		{"as many as fit in several pools", withPools(200, 0, 56), "", ""},
		{"one more in several pools", withPools(200, 0, 57, 3), workers + "[2].maximum", "257 nodes"},
		{"more than numbers have room for", withPools(1<<31-1, 1<<31-1), workers + "[0].maximum", "2147483647 nodes"},
		{"smaller ranges of nodes", with(masks(25), 512), "", ""},
		{"larger ranges of nodes", with(masks(20), 17), workers + "[0].maximum", "a /20 of pods for 16"},
		{"a larger range of pods", with(pods(new("10.32.0.0/11")), 8192), "", ""},
		{"pods of the seed's default", with(pods(nil), 65536), "", ""},
		{"more than any default", with(pods(nil), 65537), workers + "[0].maximum", "more than 65536"},
	}, aShoot, ValidateNewShoot)
}

// A range that is known only with the seed decides then. What had too many before is not made worse, and can be changed
// otherwise.
func TestNodesOfExistingShootsFit(t *testing.T) {
	old := stored(aShoot)()
	withPools(300)(old)
	changed := old.DeepCopy()
	changed.Spec.Provider.Workers[0].Minimum = 1
	expectError(t, ValidateShootUpdate(changed, old), "", "")
	changed.Spec.Provider.Workers[0].Maximum = 290
	expectError(t, ValidateShootUpdate(changed, old), "", "")
	changed.Spec.Provider.Workers[0].Maximum = 301
	expectError(t, ValidateShootUpdate(changed, old), "spec.provider.workers[0].maximum", "301 nodes")

	old.Spec.Networking.Pods = nil
	bound := old.DeepCopy()
	bound.Spec.SeedName, bound.Spec.Networking.Pods = new("local"), new("10.3.0.0/16")
	expectError(t, ValidateShootBindingUpdate(bound, old), "spec.provider.workers[0].maximum", "300 nodes")
	bound.Spec.Networking.Pods = new("10.6.0.0/15")
	expectError(t, ValidateShootBindingUpdate(bound, old), "", "")
}

func TestNodesOfTemplatesFit(t *testing.T) {
	shoot := aShoot()
	withPools(257)(shoot)
	template := &ShootTemplate{Spec: shoot.Spec}
	expectError(t, ValidateShootTemplate(template, "garden-demo", nil), "spec.provider.workers[0].maximum", "257 nodes")
}
