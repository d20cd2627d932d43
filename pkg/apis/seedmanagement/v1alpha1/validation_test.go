package v1alpha1

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func seedConfig(config map[string]any) map[string]any { return config["seedConfig"].(map[string]any) }

func TestValidateManagedSeed(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*ManagedSeed)
		field, message string
	}{
		"as it is":        {func(*ManagedSeed) {}, "", ""},
		"other namespace": {func(m *ManagedSeed) { m.Namespace = "garden-demo" }, "metadata.namespace", `"garden"`},
		"two dashes":      {func(m *ManagedSeed) { m.Name = "a--b" }, "metadata.name", "--"},
		"no shoot":        {func(m *ManagedSeed) { m.Spec.Shoot = nil }, "spec.shoot.name", "becomes a seed"},
		"unknown bootstrap": {func(m *ManagedSeed) { m.Spec.Gardenlet.Bootstrap = new(Bootstrap("Magic")) },
			"spec.gardenlet.bootstrap", `"BootstrapToken"`},
		"fewer than no replicas": {func(m *ManagedSeed) { m.Spec.Gardenlet.Deployment.ReplicaCount = new(int32(-1)) },
			"spec.gardenlet.deployment.replicaCount", "greater than or equal to 0"},
		"ref and tag": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.Image = &Image{Ref: new("a"), Tag: new("b")}
		},
			"spec.gardenlet.deployment.image.ref", "together"},
		"unknown pull policy": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.Image.PullPolicy = new(corev1.PullPolicy("Often"))
		},
			"spec.gardenlet.deployment.image.pullPolicy", "IfNotPresent"},
		"bad pod label": {func(m *ManagedSeed) { m.Spec.Gardenlet.Deployment.PodLabels = map[string]string{"a b": ""} },
			"spec.gardenlet.deployment.podLabels", "a b"},
		"label of the chart": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.PodLabels = map[string]string{"app": "x"}
		},
			"spec.gardenlet.deployment.podLabels[app]", "chart itself"},
		"volume of the chart": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.AdditionalVolumes = []corev1.Volume{{Name: "more"}, {Name: "tmp"}}
		}, "spec.gardenlet.deployment.additionalVolumes[1].name", "chart itself"},
		"mount of the chart": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.AdditionalVolumeMounts = []corev1.VolumeMount{{Name: "more", MountPath: "/tmp"}}
		}, "spec.gardenlet.deployment.additionalVolumeMounts[0].mountPath", "chart itself"},
		"variable of the chart": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Deployment.Env = []corev1.EnvVar{{Name: "HOME"}}
		},
			"spec.gardenlet.deployment.env[0].name", "chart itself"},
		"operation": {func(m *ManagedSeed) { m.Annotations = map[string]string{"gardener.cloud/operation": "explode"} },
			"metadata.annotations[gardener.cloud/operation]", "renew-kubeconfig"},
		"no configuration": {func(m *ManagedSeed) { m.Spec.Gardenlet.Config = nil }, "", ""},
		"configuration without a seed": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) { delete(c, "seedConfig") })
		}, "", ""},
		"another kind of configuration": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) { c["kind"] = "Other" })
		}, "spec.gardenlet.config", "GardenletConfiguration"},
		"seed with a name": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) {
				seedConfig(c)["metadata"] = map[string]any{"name": "x"}
			})
		}, "spec.gardenlet.config.seedConfig.metadata.name", "name of this object"},
		"seed as the shoot is": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) { seedConfig(c)["spec"] = map[string]any{} })
		}, "", ""},
		"seed with a bad network": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) {
				seedConfig(c)["spec"] = map[string]any{
					"networks": map[string]any{"pods": "10.1.0.0/33", "services": "10.2.0.0/16"},
				}
			})
		}, "spec.gardenlet.config.seedConfig.spec.networks.pods", "CIDR"},
		"seed with too many zones": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) {
				seedConfig(c)["spec"] = map[string]any{
					"provider": map[string]any{"zones": make([]string, gardencorev1beta1.MaxItems+1)},
				}
			})
		}, "spec.gardenlet.config.seedConfig.spec.provider.zones", "Too many"},
		"kubeconfig and bootstrap": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) {
				c["gardenClientConnection"] = map[string]any{"kubeconfig": "/k"}
			})
		}, "spec.gardenlet.config.gardenClientConnection.kubeconfig", "BootstrapToken"},
		"neither kubeconfig nor bootstrap": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Bootstrap = new(BootstrapNone)
		}, "spec.gardenlet.config.gardenClientConnection.kubeconfig", "bootstrap is None"},
		"bootstrap kubeconfig without bootstrap": {func(m *ManagedSeed) {
			m.Spec.Gardenlet.Bootstrap = new(BootstrapNone)
			m.Spec.Gardenlet.Config = aConfig(func(c map[string]any) {
				c["gardenClientConnection"] = map[string]any{
					"kubeconfig": "/k", "bootstrapKubeconfig": map[string]any{"name": "x"},
				}
			})
		}, "spec.gardenlet.config.gardenClientConnection.bootstrapKubeconfig", "bootstrap is None"},
	} {
		t.Run(name, func(t *testing.T) {
			managedSeed := aManagedSeed()
			test.change(managedSeed)
			expectError(t, ValidateManagedSeed(managedSeed), test.field, test.message)
		})
	}
}

func TestValidateManagedSeedUpdate(t *testing.T) {
	for path, change := range map[string]func(*ManagedSeed){
		"spec.shoot": func(m *ManagedSeed) { m.Spec.Shoot.Name = "other" },
		"spec.gardenlet.bootstrap": func(m *ManagedSeed) {
			m.Spec.Gardenlet.Bootstrap = new(BootstrapServiceAccount)
		},
		"spec.gardenlet.mergeWithParent": func(m *ManagedSeed) { m.Spec.Gardenlet.MergeWithParent = new(false) },
	} {
		managedSeed := aManagedSeed()
		change(managedSeed)
		expectError(t, ValidateManagedSeedUpdate(managedSeed, aManagedSeed()), path, "cannot be changed")
	}
}

func TestOperationsAreCarriedOutOneAfterTheOther(t *testing.T) {
	managedSeed, old := aManagedSeed(), aManagedSeed()
	old.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}
	managedSeed.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"}
	expectError(t, ValidateManagedSeedUpdate(managedSeed, old), "metadata.annotations[gardener.cloud/operation]",
		`before "renew-kubeconfig"`)
}

func TestValidateGardenlet(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*Gardenlet)
		field, message string
	}{
		"as it is": {func(*Gardenlet) {}, "", ""},
		"no chart": {
			func(g *Gardenlet) { g.Spec.Deployment.Helm.OCIRepository.Ref = nil },
			"spec.deployment.helm.ociRepository.ref", "whole reference",
		},
		"no seed": {func(g *Gardenlet) {
			g.Spec.Config = aConfig(func(c map[string]any) { delete(c, "seedConfig") })
		}, "spec.config.seedConfig", "what the seed is like"},
		"incomplete seed": {func(g *Gardenlet) {
			g.Spec.Config = aConfig(func(c map[string]any) { delete(seedConfig(c)["spec"].(map[string]any), "dns") })
		}, "spec.config.seedConfig.spec.dns.internal", "domain"},
		"no pods": {
			func(g *Gardenlet) { g.Spec.Deployment.ReplicaCount = new(int32(0)) }, "spec.deployment.replicaCount",
			"does not run",
		},
		"another account": {func(g *Gardenlet) { g.Spec.Deployment.ServiceAccountName = new("other") },
			"spec.deployment.serviceAccountName", "lose its rights"},
		"images of components of components": {func(g *Gardenlet) {
			g.Spec.Deployment.ComponentImageVectorOverwrite = new("components: []")
		},
			"spec.deployment.componentImageVectorOverwrite", "imageVectorOverwrite"},
		"installed from outside": {func(g *Gardenlet) {
			g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "there"}
		},
			"spec.kubeconfigSecretRef", "first time yourself"},
		"installed again from outside": {func(g *Gardenlet) {
			g.Annotations = map[string]string{"gardener.cloud/operation": "force-redeploy"}
		},
			"metadata.annotations[gardener.cloud/operation]", "ask for reconcile"},
		"new certificate": {func(g *Gardenlet) {
			g.Annotations = map[string]string{"gardener.cloud/operation": "renew-kubeconfig"}
		},
			"metadata.annotations[gardener.cloud/operation]", "by itself"},
		"again": {
			func(g *Gardenlet) { g.Annotations = map[string]string{"gardener.cloud/operation": "reconcile"} }, "", "",
		},
		"other namespace": {func(g *Gardenlet) { g.Namespace = "default" }, "metadata.namespace", "garden"},
	} {
		t.Run(name, func(t *testing.T) {
			gardenlet := aGardenlet()
			test.change(gardenlet)
			expectError(t, ValidateGardenlet(gardenlet), test.field, test.message)
		})
	}
}

func TestGardenletsOfBeforeKeepWhatIsRefusedNow(t *testing.T) {
	gardenlet, old := aGardenlet(), aGardenlet()
	old.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "there"}
	gardenlet.Spec.KubeconfigSecretRef = old.Spec.KubeconfigSecretRef.DeepCopy()
	gardenlet.Spec.Deployment.PodLabels = map[string]string{"stage": "two"}
	expectError(t, ValidateGardenletUpdate(gardenlet, old), "", "")
	expectError(t, ValidateGardenletUpdate(gardenlet, aGardenlet()), "spec.kubeconfigSecretRef", "first time yourself")
	gardenlet.Spec.KubeconfigSecretRef.Name = ""
	expectError(t, ValidateGardenletUpdate(gardenlet, old), "spec.kubeconfigSecretRef.name", "kubeconfig")
}

func TestValidateManagedSeedSet(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*ManagedSeedSetSpec)
		field, message string
	}{
		"as it is": {func(*ManagedSeedSetSpec) {}, "", ""},
		"no selector": {
			func(s *ManagedSeedSetSpec) { s.Selector = metav1.LabelSelector{} }, "spec.selector",
			"label of both templates",
		},
		"shoot in it": {
			func(s *ManagedSeedSetSpec) { s.Template.Spec.Shoot = &Shoot{Name: "a"} }, "spec.template.spec.shoot",
			"of its own",
		},
		"other labels": {
			func(s *ManagedSeedSetSpec) { s.ShootTemplate.Labels = nil }, "spec.shootTemplate.metadata.labels",
			"spec.selector",
		},
		"no workers": {
			func(s *ManagedSeedSetSpec) { s.ShootTemplate.Spec.Provider.Workers = nil },
			"spec.shootTemplate.spec.provider.workers", "needs workers",
		},
		"shoot mistake": {
			func(s *ManagedSeedSetSpec) { s.ShootTemplate.Spec.Region = "" }, "spec.shootTemplate.spec.region",
			"region",
		},
		"strategy": {
			func(s *ManagedSeedSetSpec) { s.UpdateStrategy.Type = new(UpdateStrategyType("Big bang")) },
			"spec.updateStrategy.type", "RollingUpdate",
		},
		"negative number": {
			func(s *ManagedSeedSetSpec) { s.Replicas = new(int32(-1)) }, "spec.replicas", "greater than",
		},
		"partition": {func(s *ManagedSeedSetSpec) {
			s.UpdateStrategy.RollingUpdate = &RollingUpdateStrategy{Partition: new(int32(-1))}
		},
			"spec.updateStrategy.rollingUpdate.partition", "greater than"},
	} {
		t.Run(name, func(t *testing.T) {
			set := aManagedSeedSet()
			test.change(&set.Spec)
			errs := ValidateManagedSeedSet(set)
			if name == "no workers" { // what needs them complains, too
				errs = errs[len(errs)-1:]
			}
			expectError(t, errs, test.field, test.message)
		})
	}
}

func TestValidateManagedSeedSetUpdate(t *testing.T) {
	set := aManagedSeedSet()
	set.Spec.Replicas = new(int32(3))
	expectError(t, ValidateManagedSeedSetUpdate(set, aManagedSeedSet()), "", "")
	set.Spec.RevisionHistoryLimit = new(int32(3))
	expectError(t, ValidateManagedSeedSetUpdate(set, aManagedSeedSet()), "spec.revisionHistoryLimit",
		"cannot be changed")
	set = aManagedSeedSet()
	set.Spec.ShootTemplate.Spec.Region = "there"
	expectError(t, ValidateManagedSeedSetUpdate(set, aManagedSeedSet()), "spec.shootTemplate.spec.region",
		"cannot be changed")
}

func TestValidateManagedSeedSetStatusUpdate(t *testing.T) {
	old := aManagedSeedSet()
	old.Status = ManagedSeedSetStatus{Replicas: 2, NextReplicaNumber: 2}
	pending := func(name string, reason PendingReplicaReason) *PendingReplica {
		return &PendingReplica{Name: name, Reason: reason}
	}
	for name, test := range map[string]struct {
		status         ManagedSeedSetStatus
		field, message string
	}{
		"progress": {
			ManagedSeedSetStatus{
				Replicas: 3, ReadyReplicas: 2, NextReplicaNumber: 3,
				PendingReplica: pending("europe-2", ShootReconcilingReason),
			}, "", "",
		},
		"too many ready": {
			ManagedSeedSetStatus{Replicas: 1, ReadyReplicas: 2, NextReplicaNumber: 2}, "status.readyReplicas",
			"more than replicas",
		},
		"backwards": {
			ManagedSeedSetStatus{Replicas: 1, NextReplicaNumber: 1}, "status.nextReplicaNumber", "it was 2",
		},
		"other replica": {
			ManagedSeedSetStatus{NextReplicaNumber: 2, PendingReplica: pending("asia-0", SeedNotReadyReason)},
			"status.pendingReplica.name", "europe-<ordinal>",
		},
		"other reason": {
			ManagedSeedSetStatus{NextReplicaNumber: 2, PendingReplica: pending("europe-0", "Tired")},
			"status.pendingReplica.reason", "SeedNotReady",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := aManagedSeedSet()
			set.Status = test.status
			expectError(t, ValidateManagedSeedSetStatusUpdate(set, old), test.field, test.message)
		})
	}
}

func TestReplicaOrdinal(t *testing.T) {
	for replica, want := range map[string]int32{
		"europe-0": 0, "europe-12": 12, "europe-": -1, "europe-01": -1, "europe-+1": -1, "europe-west-1": -1,
		"asia-1": -1, "europe-99999999999": -1,
	} {
		got, ok := ReplicaOrdinal("europe", replica)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("ReplicaOrdinal(%q) = %d, %v, want %d", replica, got, ok, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	managedSeed := aManagedSeed()
	gardenlet := managedSeed.Spec.Gardenlet
	if *gardenlet.Bootstrap != BootstrapToken || !*gardenlet.MergeWithParent ||
		*gardenlet.Deployment.ReplicaCount != 2 || *gardenlet.Deployment.RevisionHistoryLimit != 2 ||
		!*gardenlet.Deployment.EnableHealthProbes || *gardenlet.Deployment.Image.PullPolicy != corev1.PullIfNotPresent {
		t.Errorf("gardenlet = %+v", gardenlet)
	}
	latest := &Gardenlet{
		Spec: GardenletSpec{
			Deployment: GardenletSelfDeployment{
				GardenletDeployment: GardenletDeployment{Image: &Image{Tag: new("latest")}},
			},
		},
	}
	SetDefaultsGardenlet(latest)
	if policy := *latest.Spec.Deployment.Image.PullPolicy; policy != corev1.PullAlways {
		t.Errorf("latest is pulled %s", policy)
	}
	set := aManagedSeedSet()
	if *set.Spec.Replicas != 1 || *set.Spec.RevisionHistoryLimit != 10 ||
		*set.Spec.UpdateStrategy.Type != RollingUpdateStrategyType ||
		*set.Spec.Template.Spec.Gardenlet.Bootstrap != BootstrapToken {
		t.Errorf("set = %+v", set.Spec)
	}
	if set.Spec.ShootTemplate.Spec.Maintenance != nil {
		t.Error("shoots of a set would all have the same maintenance window")
	}
}

func TestSeedTemplateOf(t *testing.T) {
	template, err := SeedTemplateOf(aConfig())
	if err != nil || template == nil || template.Labels["tier"] != "seeds" || template.Spec.Provider.Type != "local" {
		t.Errorf("template = %+v, %v", template, err)
	}
	if template, err := SeedTemplateOf(nil); err != nil || template != nil {
		t.Errorf("template of nothing = %v, %v", template, err)
	}
}
