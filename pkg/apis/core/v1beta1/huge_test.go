package v1beta1

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Objects of a mebibyte that are made to be slow to check. Validation has to stay far below 100 ms with each.
func BenchmarkValidateHuge(b *testing.B) {
	const size = 1 << 20
	names := func(item int) []string {
		var all []string
		for i := range size / item {
			all = append(all, fmt.Sprintf("%0*d", item-3, i)) // with quotes and comma
		}
		return all
	}
	profile := aProfile()
	shoots := map[string]func(*Shoot){
		"workers": func(s *Shoot) {
			worker := s.Spec.Provider.Workers[0]
			for i := range size / 80 {
				worker.Name = fmt.Sprint("w", i)
				s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, worker)
			}
		},
		"zones":      func(s *Shoot) { s.Spec.Provider.Workers[0].Zones = names(10) },
		"extensions": func(s *Shoot) { s.Spec.Extensions = make([]Extension, size/12) },
		"resources":  func(s *Shoot) { s.Spec.Resources = make([]NamedResourceReference, size/3) },
		"schedules": func(s *Shoot) {
			s.Spec.Hibernation = &Hibernation{}
			for _, name := range names(40) {
				s.Spec.Hibernation.Schedules = append(s.Spec.Hibernation.Schedules,
					HibernationSchedule{Start: new("0 1 * * *"), Location: &name})
			}
		},
		"cron": func(s *Shoot) {
			s.Spec.Hibernation = &Hibernation{
				Schedules: []HibernationSchedule{{Start: new(strings.Repeat("1,", size/2) + " * * * *")}},
			}
		},
		"volume size": func(s *Shoot) {
			s.Spec.Provider.Workers[0].Volume = &Volume{VolumeSize: strings.Repeat("1", size)}
		},
		"expander": func(s *Shoot) {
			s.Spec.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{
				Expander: new(ExpanderMode(strings.Repeat("a,", size/2))),
			}
		},
		"encrypted resources": func(s *Shoot) {
			s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = names(10)
		},
		"operations": func(s *Shoot) {
			s.Annotations = map[string]string{GardenerOperation: strings.Join(names(10), ";")}
		},
		"email": func(s *Shoot) {
			s.Spec.Monitoring = &Monitoring{Alerting: &Alerting{EmailReceivers: []string{strings.Repeat("(", size)}}}
		},
		"version": func(s *Shoot) { s.Spec.Kubernetes.Version = strings.Repeat("1.", size/2) },
		"taints":  func(s *Shoot) { s.Spec.Kubernetes.ClusterAutoscaler = &ClusterAutoscaler{StartupTaints: names(8)} },
		"gates": func(s *Shoot) {
			s.Spec.Kubernetes.KubeAPIServer.FeatureGates = map[string]bool{}
			for _, name := range names(16) {
				s.Spec.Kubernetes.KubeAPIServer.FeatureGates[name] = true
			}
		},
		"threshold": func(s *Shoot) {
			s.Spec.Kubernetes.Kubelet.EvictionHard = &KubeletConfigEviction{
				MemoryAvailable: new(strings.Repeat("1", size)),
			}
		},
		"zones of all workers": func(s *Shoot) {
			worker := s.Spec.Provider.Workers[0]
			worker.Zones = names(8)[:maxZones]
			s.Spec.Provider.Workers = nil
			for i := range MaxWorkers {
				worker.Name = fmt.Sprint("w", i)
				s.Spec.Provider.Workers = append(s.Spec.Provider.Workers, worker)
			}
		},
		"ranges": func(s *Shoot) {
			s.Spec.Purpose = new(ShootPurposeEvaluation)
			s.Spec.Addons = &Addons{NginxIngress: &NginxIngress{LoadBalancerSourceRanges: names(10)}}
		},
	}
	for name, change := range shoots {
		b.Run("Shoot/"+name, func(b *testing.B) {
			shoot, old := aShoot(), aShoot()
			change(shoot)
			for b.Loop() {
				DefaultShootFromCloudProfile(shoot, shoot, &profile.Spec, time.Unix(0, 0))
				if len(ValidateLengths(shoot)) == 0 {
					ValidateShootUpdate(shoot, old)
					ValidateShootAgainstCloudProfile(shoot, old, &profile.Spec, time.Unix(0, 0))
				}
			}
		})
	}
	benchmarkHuge(b, "CloudProfile/versions", aProfile, ValidateCloudProfile, func(p *CloudProfile) {
		for i := range size / 30 {
			p.Spec.Kubernetes.Versions = append(p.Spec.Kubernetes.Versions,
				ExpirableVersion{Version: fmt.Sprintf("1.%d.0", i)})
		}
	})
	benchmarkHuge(b, "CloudProfile/capabilities", aProfile, ValidateCloudProfile, func(p *CloudProfile) {
		p.Spec.MachineTypes[0].Capabilities = Capabilities{}
		for _, name := range names(12) {
			p.Spec.MachineTypes[0].Capabilities[name] = CapabilityValues{"a"}
		}
	})
	benchmarkHuge(b, "CloudProfile/constraint", aProfile, ValidateCloudProfile, func(p *CloudProfile) {
		p.Spec.MachineImages[0].Versions[0].KubeletVersionConstraint = new(strings.Repeat(">1,", size/3))
	})
	benchmarkHuge(b, "CloudProfile/constraints", aProfile, ValidateCloudProfile, func(p *CloudProfile) {
		for i := range maxImageVersions - 5 {
			version := MachineImageVersion{
				ExpirableVersion:         ExpirableVersion{Version: fmt.Sprintf("1.%d.0", i)},
				KubeletVersionConstraint: new(strings.Repeat(">1,", maxConstraintParts-1) + ">1"),
			}
			p.Spec.MachineImages[i%2].Versions = append(p.Spec.MachineImages[i%2].Versions, version)
		}
	})
	benchmarkHuge(b, "Seed/zones", aSeed, ValidateSeed, func(s *Seed) {
		s.Spec.Provider.Zones = names(10)[:size/20]
		zones := make([]SeedSettingLoadBalancerServicesZones, size/40)
		s.Spec.Settings = &SeedSettings{LoadBalancerServices: &SeedSettingLoadBalancerServices{Zones: zones}}
	})
	benchmarkHuge(b, "Project/members", aProject, ValidateProject, func(p *Project) {
		for _, name := range names(60) {
			member := p.Spec.Members[0]
			member.Name = name
			p.Spec.Members = append(p.Spec.Members, member)
		}
	})
	benchmarkHuge(b, "ControllerRegistration/resources", aRegistration, ValidateControllerRegistration,
		func(r *ControllerRegistration) {
			for _, name := range names(30) {
				r.Spec.Resources = append(r.Spec.Resources, ControllerResource{Kind: "Worker", Type: name})
			}
		})
}

func benchmarkHuge[T any](b *testing.B, name string, object func() T, validate func(T) field.ErrorList,
	change func(T)) {
	b.Run(name, func(b *testing.B) {
		o := object()
		change(o)
		for b.Loop() {
			if len(ValidateLengths(o)) == 0 {
				validate(o)
			}
		}
	})
}
