package v1beta1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestAdaptToKubernetesVersion(t *testing.T) {
	for _, test := range []struct {
		name    string
		version string
		before  func(*ShootSpec)
		after   func(*ShootSpec)
		// want are parts of the changes, in their order.
		want []string
	}{
		{"nothing to do", "1.36.3", func(*ShootSpec) {}, func(*ShootSpec) {}, nil},
		{
			"fields that are moved", "1.35.4",
			func(s *ShootSpec) {
				s.CloudProfile, s.CloudProfileName = nil, new("local")
				s.DNS = &DNS{Providers: []DNSProvider{{Type: new("route"), SecretName: new("dns")}}}
				s.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{MaxEmptyBulkDelete: new(int32(3))}
			},
			func(s *ShootSpec) {
				s.CloudProfile = &CloudProfileReference{Kind: "CloudProfile", Name: "local"}
				s.DNS = &DNS{
					Providers: []DNSProvider{
						{
							Type: new("route"), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{
								APIVersion: "v1", Kind: "Secret", Name: "dns",
							},
						},
					},
				}
				s.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{MaxScaleDownParallelism: new(int32(3))}
			},
			[]string{
				"spec.cloudProfileName dropped", "spec.dns.providers[0].secretName dropped",
				"spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete dropped, which Kubernetes 1.33 does not have " +
					"any more (use maxScaleDownParallelism)",
			},
		},
		{
			"fields that are gone", "1.35.4",
			func(s *ShootSpec) {
				s.Addons = &Addons{}
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{
					EnableAnonymousAuthentication: new(false),
					WatchCacheSizes:               &WatchCacheSizes{Default: new(int32(5))},
				}
			},
			func(s *ShootSpec) {
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{WatchCacheSizes: &WatchCacheSizes{}}
			},
			[]string{"spec.addons", "enableAnonymousAuthentication", "watchCacheSizes.default"},
		},
		{
			"fields that the version still has", "1.32.0",
			func(s *ShootSpec) { s.CloudProfileName = new("local") },
			func(s *ShootSpec) { s.CloudProfileName = new("local") }, nil,
		},
		{
			"only the owner can decide", "1.36.3",
			func(s *ShootSpec) { s.SecretBindingName = new("b") },
			func(s *ShootSpec) { s.SecretBindingName = new("b") }, nil,
		},
		{
			"feature gates", "1.36.3",
			func(s *ShootSpec) {
				gates := func() map[string]bool {
					return map[string]bool{"TopologyAwareHints": true, "AllAlpha": false}
				}
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{}
				s.Kubernetes.KubeAPIServer.FeatureGates = gates()
				s.Kubernetes.Kubelet = &KubeletConfig{}
				s.Kubernetes.Kubelet.FeatureGates = gates()
				s.Provider.Workers = []Worker{{Kubernetes: &WorkerKubernetes{Kubelet: s.Kubernetes.Kubelet.DeepCopy()}}}
				s.Provider.Workers = append(s.Provider.Workers,
					Worker{
						Kubernetes: &WorkerKubernetes{Version: new("1.35.4"), Kubelet: s.Kubernetes.Kubelet.DeepCopy()},
					})
			},
			func(s *ShootSpec) {
				left := map[string]bool{"AllAlpha": false}
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{}
				s.Kubernetes.KubeAPIServer.FeatureGates = left
				s.Kubernetes.Kubelet = &KubeletConfig{}
				s.Kubernetes.Kubelet.FeatureGates = left
				s.Provider.Workers = []Worker{{Kubernetes: &WorkerKubernetes{Kubelet: s.Kubernetes.Kubelet}}}
				older := s.Kubernetes.Kubelet.DeepCopy()
				older.FeatureGates = map[string]bool{"TopologyAwareHints": true, "AllAlpha": false}
				s.Provider.Workers = append(s.Provider.Workers,
					Worker{Kubernetes: &WorkerKubernetes{Version: new("1.35.4"), Kubelet: older}})
			},
			[]string{
				"spec.kubernetes.kubeAPIServer.featureGates[TopologyAwareHints] dropped", "spec.kubernetes.kubelet",
				"spec.provider.workers[0].kubernetes.kubelet",
			},
		},
		{
			"admission plugins", "1.36.3",
			func(s *ShootSpec) {
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{
					AdmissionPlugins: []AdmissionPlugin{{Name: "PodSecurityPolicy"}, {Name: "PodNodeSelector"}},
				}
			},
			func(s *ShootSpec) {
				s.Kubernetes.KubeAPIServer = &KubeAPIServerConfig{
					AdmissionPlugins: []AdmissionPlugin{{Name: "PodNodeSelector"}},
				}
			},
			[]string{"spec.kubernetes.kubeAPIServer.admissionPlugins[PodSecurityPolicy] dropped"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := func(change func(*ShootSpec)) *ShootSpec {
				s := &ShootSpec{Kubernetes: Kubernetes{Version: test.version}}
				change(s)
				return s
			}
			got := spec(test.before)
			changes := AdaptToKubernetesVersion(got)
			if difference := cmp.Diff(spec(test.after), got); difference != "" {
				t.Error(difference)
			}
			if len(changes) != len(test.want) {
				t.Fatalf("changes are %q", changes)
			}
			for i := range changes {
				if !strings.Contains(changes[i], test.want[i]) {
					t.Errorf("change %q, want %q", changes[i], test.want[i])
				}
			}
			if test.name == "only the owner can decide" {
				return
			}
			if errs := append(validateRemovedFields(got, field.NewPath("spec")),
				validateKubernetes(&got.Kubernetes, field.NewPath("spec", "kubernetes"))...); len(errs) > 0 {
				t.Errorf("it is still refused: %v", errs)
			}
		})
	}
}
