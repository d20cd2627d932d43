package v1beta1

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestSplitOperations(t *testing.T) {
	if got, want := SplitOperations(" rotate-ca-start; ;reconcile;rotate-ca-start"),
		[]string{"rotate-ca-start", "reconcile"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func aCreatedShoot() *Shoot {
	shoot := stored(aShoot)()
	shoot.Spec.SeedName = new("local")
	shoot.Status.LastOperation = &LastOperation{Type: LastOperationTypeCreate, State: LastOperationStateSucceeded}
	shoot.Status.Credentials = &ShootCredentials{Rotation: &ShootCredentialsRotation{}}
	return shoot
}

// operation is a row of a table: a state of the shoot, what is asked for, and the message when it is refused.
type operation struct {
	name    string
	state   func(*Shoot)
	asked   string
	message string
}

func TestValidateOperations(t *testing.T) {
	as := func(ca, key CredentialsRotationPhase) func(*Shoot) {
		return func(s *Shoot) {
			s.Status.Credentials.Rotation.CertificateAuthorities = &CARotation{Phase: ca}
			s.Status.Credentials.Rotation.ServiceAccountKey = &ServiceAccountKeyRotation{Phase: key}
		}
	}
	asleep := func(s *Shoot) { s.Spec.Hibernation = &Hibernation{Enabled: new(true)} }
	const path = "metadata.annotations[gardener.cloud/operation]"
	for _, row := range []operation{
		{"reconcile", nil, "reconcile", ""},
		{"unknown", nil, "explode", "must be one of reconcile"},
		{"rotation", nil, "rotate-credentials-start", ""},
		{
			"rotation of what is being created",
			func(s *Shoot) { s.Status.LastOperation.State = LastOperationStateProcessing }, "rotate-ca-start",
			"once the cluster has been created",
		},
		{"rotation while reconciled", func(s *Shoot) {
			s.Status.LastOperation = &LastOperation{Type: LastOperationTypeReconcile, State: LastOperationStateError}
		}, "rotate-ca-start", ""},
		{
			"rotation under way", as(RotationPreparing, ""), "rotate-ca-start-without-workers-rollout",
			"certificate authorities is Preparing",
		},
		{"other rotation under way", as(RotationPreparing, ""), "rotate-serviceaccount-key-start", ""},
		{
			"part of all under way", as("", RotationPrepared), "rotate-credentials-start",
			"service account tokens is Prepared",
		},
		{"completion", as(RotationPrepared, RotationPrepared), "rotate-credentials-complete", ""},
		{"completion of what did not begin", nil, "rotate-ca-complete", "it is not under way"},
		{"completion too early", as(RotationPreparing, ""), "rotate-ca-complete", "it is Preparing"},
		{
			"both halves", as(RotationCompleted, ""), "rotate-ca-start;rotate-ca-start-without-workers-rollout",
			"cannot be asked for together",
		},
		{"rotation while asleep", asleep, "rotate-ca-start", "wake it up first"},
		{"rotation of an SSH key while asleep", asleep, "rotate-ssh-keypair", ""},
		{"rotation of what does not exist", asleep, "rotate-observability-credentials", "is not offered"},
		{"encryption key, as it was", nil, "rotate-etcd-encryption-key-start", "use rotate-etcd-encryption-key"},
		{"encryption key", nil, "rotate-etcd-encryption-key", ""},
		{"machines", nil, "rollout-workers=pool", "not offered: machines are replaced when their pool changes"},
		{"update by force of what is replaced", nil, "force-in-place-update", "this one has none"},
		{"update by force", func(s *Shoot) {
			s.Spec.Provider.Workers[0].UpdateStrategy = new(AutoInPlaceUpdate)
		}, "force-in-place-update", ""},
		{"all machines", nil, "rotate-rollout-workers=*", ""},
		{"machines of others", nil, "rotate-rollout-workers=pool,other", `names pool "other"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := aCreatedShoot()
			if row.state != nil {
				row.state(old)
			}
			shoot := old.DeepCopy()
			shoot.Annotations = map[string]string{GardenerOperation: row.asked}
			at := path
			if row.message == "" {
				at = ""
			}
			expectError(t, ValidateShootUpdate(shoot, old), at, row.message)

			unchanged := shoot.DeepCopy()
			unchanged.Labels = map[string]string{"a": "b"}
			expectError(t, ValidateShootUpdate(unchanged, shoot), "", "") // what is there is not checked again
		})
	}
}

func TestValidateMaintenanceOperations(t *testing.T) {
	const path = "metadata.annotations[maintenance.gardener.cloud/operation]"
	for asked, message := range map[string]string{
		"reconcile": "", "rotate-ca-start": "", "retry": "use annotation gardener.cloud/operation",
		"explode": "must be one of",
	} {
		shoot := aCreatedShoot()
		shoot.Annotations = map[string]string{GardenerMaintenanceOperation: asked}
		at := path
		if message == "" {
			at = ""
		}
		expectError(t, ValidateShootUpdate(shoot, aCreatedShoot()), at, message)
	}
}

func TestValidateForceDeletion(t *testing.T) {
	const path = "metadata.annotations[confirmation.gardener.cloud/force-deletion]"
	deleted := func(s *Shoot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	broken := func(s *Shoot) {
		deleted(s)
		s.Status.LastErrors = []LastError{{Codes: []ErrorCode{ErrorInfraUnauthorized}}}
	}
	for _, row := range []struct {
		name          string
		state         func(*Shoot)
		before, after string
		message       string
	}{
		{"of what lives", func(*Shoot) {}, "", "true", "delete it first"},
		{"of what goes well", deleted, "", "true", "ERR_INFRA_UNAUTHORIZED"},
		{"of what is broken", broken, "", "true", ""},
		{"said in another way", broken, "true", "1", ""},
		{"taken back", broken, "true", "", "cannot be taken back"},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := aCreatedShoot()
			row.state(old)
			shoot := old.DeepCopy()
			old.Annotations = map[string]string{AnnotationConfirmationForceDeletion: row.before}
			shoot.Annotations = map[string]string{AnnotationConfirmationForceDeletion: row.after}
			at := path
			if row.message == "" {
				at = ""
			}
			expectError(t, ValidateShootUpdate(shoot, old), at, row.message)
		})
	}
}

func TestValidateNewShoot(t *testing.T) {
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{"own finalizer", func(s *Shoot) { s.Finalizers = []string{"example.com/mine"} }, "", ""},
		{
			"finalizer of controllers", func(s *Shoot) { s.Finalizers = []string{GardenerName} },
			"metadata.finalizers[0]", "controllers only",
		},
		{
			"rotation", func(s *Shoot) { s.Annotations = map[string]string{GardenerOperation: "rotate-ca-start"} },
			"metadata.annotations[gardener.cloud/operation]", "once the cluster has been created",
		},
	}, aShoot, ValidateNewShoot)
}

// What the state of a cluster does not allow is refused.
func TestValidateShootUpdateInState(t *testing.T) {
	hibernate := func(s *Shoot) { s.Spec.Hibernation = &Hibernation{Enabled: new(true)} }
	encrypt := func(s *Shoot) { s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources = []string{"configmaps"} }
	update := func(s *Shoot) { s.Spec.Kubernetes.Version = "1.36.4" }
	rotating := func(phase CredentialsRotationPhase) func(*Shoot) {
		return func(s *Shoot) {
			s.Status.Credentials.Rotation.ETCDEncryptionKey = &ETCDEncryptionKeyRotation{Phase: phase}
		}
	}
	inZones := func(zones ...string) func(*Shoot) {
		return func(s *Shoot) { s.Spec.ControlPlane = &ControlPlane{Zones: zones} }
	}
	tolerates := func(tolerance FailureToleranceType) func(*Shoot) {
		return func(s *Shoot) {
			s.Spec.ControlPlane = &ControlPlane{
				HighAvailability: &HighAvailability{FailureTolerance: FailureTolerance{Type: tolerance}},
			}
		}
	}
	unscheduled := func(s *Shoot) {
		tolerates(FailureToleranceTypeNode)(s)
		s.Spec.SeedName = nil
	}
	pending := func(s *Shoot) {
		s.Spec.Provider.Workers[0].UpdateStrategy = new(ManualInPlaceUpdate)
		s.Spec.Provider.Workers[0].MaxSurge, s.Spec.Provider.Workers[0].MaxUnavailable = nil, nil
		s.Status.InPlaceUpdates = &InPlaceUpdatesStatus{
			PendingWorkerUpdates: &PendingWorkerUpdates{ManualInPlaceUpdate: []string{"pool"}},
		}
	}
	for _, row := range []struct {
		name           string
		state, change  func(*Shoot)
		field, message string
	}{
		{"hibernation", func(*Shoot) {}, hibernate, "", ""},
		{"hibernation that is not possible", func(s *Shoot) {
			s.Status.Constraints = []Condition{
				{Type: ShootHibernationPossible, Status: ConditionFalse, Message: "webhook x"},
			}
		}, hibernate, "spec.hibernation.enabled", "is False: webhook x"},
		{
			"hibernation while a key is rotated", rotating(RotationCompleting), hibernate, "spec.hibernation.enabled",
			"encryption at rest is Completing",
		},
		{"encryption", func(*Shoot) {}, encrypt, "", ""},
		{
			"encryption while a key is rotated", rotating(RotationPrepared), encrypt,
			"spec.kubernetes.kubeAPIServer.encryptionConfig.resources", "is Prepared",
		},
		{
			"encryption while asleep", hibernate, encrypt, "spec.kubernetes.kubeAPIServer.encryptionConfig.resources",
			"wake it up first",
		},
		{"encryption while it changes", func(s *Shoot) {
			s.Status.Credentials.EncryptionAtRest = &EncryptionAtRest{Resources: []string{"secrets", "events"}}
		}, encrypt, "spec.kubernetes.kubeAPIServer.encryptionConfig.resources", "previous change"},
		{"encryption of a fleet", func(s *Shoot) {
			resources := s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Resources
			s.Status.Credentials.EncryptionAtRest = &EncryptionAtRest{
				Resources: append([]string{ResourceWorks}, resources...),
			}
		}, encrypt, "", ""},
		{"another cipher", func(*Shoot) {}, func(s *Shoot) {
			s.Spec.Kubernetes.KubeAPIServer.EncryptionConfig.Provider.Type = new(EncryptionProviderTypeSecretbox)
		}, "spec.kubernetes.kubeAPIServer.encryptionConfig.provider.type", `it was "aescbc"`},
		{"other zones", inZones("a"), inZones("b"), "spec.controlPlane.zones", "they were [a]"},
		{"no zones", inZones("a"), inZones(), "", ""},
		{"growth for failures of nodes", func(*Shoot) {}, tolerates(FailureToleranceTypeNode), "", ""},
		{"growth for failures of zones", inZones("a", "b", "c"), func(s *Shoot) {
			s.Spec.ControlPlane.HighAvailability = &HighAvailability{
				FailureTolerance: FailureTolerance{Type: FailureToleranceTypeZone},
			}
		}, "", ""},
		{"growth while asleep", hibernate, tolerates(FailureToleranceTypeNode), "", ""},
		{
			"from nodes to zones", tolerates(FailureToleranceTypeNode), tolerates(FailureToleranceTypeZone),
			"spec.controlPlane.highAvailability.failureTolerance.type", `it was "node": the volumes`,
		},
		{
			"from zones to nodes", tolerates(FailureToleranceTypeZone), tolerates(FailureToleranceTypeNode),
			"spec.controlPlane.highAvailability.failureTolerance.type", `it was "zone": the volumes`,
		},
		{
			"back to a control plane that may stop", tolerates(FailureToleranceTypeNode), func(s *Shoot) {
				s.Spec.ControlPlane.HighAvailability = nil
			}, "spec.controlPlane.highAvailability", "an etcd is not shrunk",
		},
		{
			"back without saying so", tolerates(FailureToleranceTypeZone), func(s *Shoot) { s.Spec.ControlPlane = nil },
			"spec.controlPlane.highAvailability", "an etcd is not shrunk",
		},
		{"from nodes to zones before there is a seed", unscheduled, tolerates(FailureToleranceTypeZone), "", ""},
		{"back before there is a seed", unscheduled, func(s *Shoot) { s.Spec.ControlPlane = nil }, "", ""},
		{
			"update while one is pending", pending, update, "spec.kubernetes.version",
			"pools (pool) wait for in-place updates",
		},
		{"update by force while one is pending", pending, func(s *Shoot) {
			update(s)
			s.Annotations = map[string]string{GardenerOperation: ShootOperationForceInPlaceUpdate}
		}, "", ""},
		{"minor update by force while one is pending", func(s *Shoot) {
			pending(s)
			s.Spec.Kubernetes.Version = "1.35.4"
		}, func(s *Shoot) {
			s.Spec.Kubernetes.Version = "1.36.3"
			s.Annotations = map[string]string{GardenerOperation: ShootOperationForceInPlaceUpdate}
		}, "spec.kubernetes.version", "not even by force"},
		{"minor update by force of another pool than the one that waits", func(s *Shoot) {
			pending(s)
			s.Status.InPlaceUpdates.PendingWorkerUpdates.ManualInPlaceUpdate = []string{"other"}
			s.Spec.Kubernetes.Version = "1.35.4"
		}, func(s *Shoot) {
			s.Spec.Kubernetes.Version = "1.36.3"
			s.Annotations = map[string]string{GardenerOperation: ShootOperationForceInPlaceUpdate}
		}, "", ""},
		{"another image in place", pending, func(s *Shoot) {
			s.Status.InPlaceUpdates = nil
			s.Annotations = map[string]string{GardenerOperation: ShootOperationForceInPlaceUpdate}
			s.Spec.Provider.Workers[0].Machine.Image.Version = new("99.0.0")
		}, "spec.provider.workers[0].machine.image.version", "no operating system is updated in place"},
		{"another provider's configuration in place", pending, func(s *Shoot) {
			s.Spec.Provider.Workers[0].ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
		}, "spec.provider.workers[0].providerConfig", "cannot be changed"},
		{
			"scaling while an update is pending", pending, func(s *Shoot) { s.Spec.Provider.Workers[0].Maximum = 9 },
			"", "",
		},
		{"kubelets go back", func(*Shoot) {}, func(s *Shoot) {
			s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.35.4")}
		}, "spec.provider.workers[0].kubernetes.version", "it was 1.36.3"},
		{"kubelets skip a version", func(s *Shoot) {
			s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.34.1")}
		}, func(s *Shoot) {
			s.Spec.Provider.Workers[0].Kubernetes = nil
		}, "", ""},
		{"kubelets skip a version in place", func(s *Shoot) {
			pending(s)
			s.Status.InPlaceUpdates = nil
			s.Spec.Provider.Workers[0].Kubernetes = &WorkerKubernetes{Version: new("1.34.1")}
		}, func(s *Shoot) { s.Spec.Provider.Workers[0].Kubernetes = nil },
			"spec.provider.workers[0].kubernetes.version", "skips minor versions"},
		{"from in place to rolling", func(s *Shoot) {
			s.Spec.Provider.Workers[0].UpdateStrategy = new(AutoInPlaceUpdate)
		}, func(s *Shoot) {
			s.Spec.Provider.Workers[0].UpdateStrategy = new(AutoRollingUpdate)
		}, "spec.provider.workers[0].updateStrategy", "create another pool"},
		{"control plane moves out", func(s *Shoot) { s.Spec.Provider.Workers[0].ControlPlane = &WorkerControlPlane{} },
			func(s *Shoot) {
				s.Spec.Provider.Workers[0].ControlPlane = nil
			}, "spec.provider.workers", "create another cluster"},
		{
			"other DNS provider", func(s *Shoot) { s.Spec.DNS = aShootWithEverything().Spec.DNS },
			func(s *Shoot) { s.Spec.DNS.Providers[0].Type = new("gcp") }, "spec.dns.providers[0].type",
			`it was "aws-route53"`,
		},
		{
			"no DNS provider", func(s *Shoot) { s.Spec.DNS = aShootWithEverything().Spec.DNS },
			func(s *Shoot) { s.Spec.DNS.Providers = nil }, "spec.dns.providers", "cannot be removed",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			old := aCreatedShoot()
			row.state(old)
			shoot := old.DeepCopy()
			row.change(shoot)
			expectError(t, ValidateShootUpdate(shoot, old), row.field, row.message)
		})
	}
}

func TestValidateStatus(t *testing.T) {
	check(t, []change[*Shoot]{
		{"as it is", func(*Shoot) {}, "", ""},
		{
			"progress over 100", func(s *Shoot) { s.Status.LastOperation.Progress = 101 },
			"status.lastOperation.progress", "between 0 and 100",
		},
		{
			"unknown operation", func(s *Shoot) { s.Status.LastOperation.Type = "Dance" }, "status.lastOperation.type",
			`"Reconcile"`,
		},
		{"condition twice", func(s *Shoot) {
			s.Status.Conditions = []Condition{{Type: "a", Status: ConditionTrue}, {Type: "a", Status: ConditionTrue}}
		}, "status.conditions[1].type", "Duplicate"},
		{
			"unknown status", func(s *Shoot) { s.Status.Constraints = []Condition{{Type: "a", Status: "Maybe"}} },
			"status.constraints[0].status", `"Progressing"`,
		},
		{"plain address", func(s *Shoot) {
			s.Status.AdvertisedAddresses = []ShootAdvertisedAddress{{Name: "external", URL: "http://a"}}
		}, "status.advertisedAddresses[0].url", "https"},
	}, aCreatedShoot, against(aCreatedShoot, ValidateShootStatusUpdate))
	check(t, []change[*Seed]{
		{
			"another identity", func(s *Seed) { s.Status.ClusterIdentity = new("other") }, "status.clusterIdentity",
			`it was "this"`,
		},
	}, aSeed, func(s *Seed) field.ErrorList {
		old := aSeed()
		old.Status.ClusterIdentity = new("this")
		return ValidateSeedStatusUpdate(s, old)
	})
	ready := func() *Project {
		project := aProject()
		project.Status.Phase = ProjectReady
		return project
	}
	check(t, []change[*Project]{
		{"terminating", func(p *Project) { p.Status.Phase = ProjectTerminating }, "", ""},
		{"no phase", func(p *Project) { p.Status.Phase = "" }, "status.phase", `"Ready"`},
	}, ready, against(ready, ValidateProjectStatusUpdate))
}
