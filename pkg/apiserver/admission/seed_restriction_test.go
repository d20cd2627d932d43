package admission

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// shootsByName is a garden that has shoots, and seed one, only.
type shootsByName map[string]*gardencorev1beta1.Shoot

func (s shootsByName) Get(_ context.Context, resource schema.GroupResource,
	namespace, name string) (runtime.Object, error) {
	if shoot, found := s[namespace+"/"+name]; found && resource == gardencorev1beta1.Resource("shoots") {
		return shoot, nil
	}
	if name == "one" && resource == gardencorev1beta1.Resource("seeds") {
		return &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "bucket-one"}}, nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s shootsByName) List(_ context.Context, _ schema.GroupResource, namespace string,
	selector fields.Selector) (runtime.Object, error) {
	result := &gardencorev1beta1.ShootList{}
	for _, shoot := range s {
		values := fields.Set{"spec.seedName": ptr.Deref(shoot.Spec.SeedName, "")}
		if shoot.Namespace == namespace && selector.Matches(values) {
			result.Items = append(result.Items, *shoot)
		}
	}
	return result, nil
}

func onSeed(name string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.SeedName = &name }
}

// identified gives a shoot what its BackupEntry is named after.
func identified(name string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.UID, shoot.Status.TechnicalID = types.UID("uid-"+name), "shoot--demo--"+name
		shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
	}
}

// write is what a seed asks for. Without an object it is a deletion, without an old one a creation.
type write struct {
	resource    schema.GroupResource
	subresource string
	object, old runtime.Object
	user        string
}

func (w write) attributes() admission.Attributes {
	operation := admission.Update
	switch {
	case w.old == nil:
		operation = admission.Create
	case w.object == nil:
		operation = admission.Delete
	}
	namespace, name := "", ""
	for _, object := range []runtime.Object{w.old, w.object} {
		if named, ok := object.(metav1.Object); ok {
			namespace, name = named.GetNamespace(), named.GetName()
		}
	}
	if w.user == "" {
		w.user = "gardener.cloud:system:seed:one"
	}
	caller := &user.DefaultInfo{Name: w.user, Groups: []string{gardencorev1beta1.SeedsGroup}}
	return admission.NewAttributesRecord(w.object, w.old, schema.GroupVersionKind{Group: w.resource.Group}, namespace,
		name,
		w.resource.WithVersion("v1beta1"), w.subresource, operation, nil, false, caller)
}

func TestSeedRestriction(t *testing.T) {
	plugin := newSeedRestriction()
	plugin.SetDependencies(&Dependencies{Reader: shootsByName{
		"garden-demo/member1": aShoot(onSeed("one"), identified("member1")),
		"garden-demo/foreign": aShoot(onSeed("two"), identified("foreign")),
	}})
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "garden-demo", Name: name} }
	bucket := func(seed string) *gardencorev1beta1.BackupBucket {
		return &gardencorev1beta1.BackupBucket{Spec: gardencorev1beta1.BackupBucketSpec{SeedName: &seed}}
	}
	entry := func(spec, status string) *gardencorev1beta1.BackupEntry {
		return &gardencorev1beta1.BackupEntry{
			ObjectMeta: meta("e"), Spec: gardencorev1beta1.BackupEntrySpec{SeedName: &spec},
			Status: gardencorev1beta1.BackupEntryStatus{SeedName: &status},
		}
	}
	made := func(change func(*gardencorev1beta1.BackupEntry)) *gardencorev1beta1.BackupEntry {
		e := entry("one", "")
		e.Name, e.Spec.BucketName = "shoot--demo--member1--uid-member1", "bucket-one"
		e.Annotations = map[string]string{gardencorev1beta1.AnnotationShootPurpose: "production"}
		if change != nil {
			change(e)
		}
		return e
	}
	installation := func(seed string) *gardencorev1beta1.ControllerInstallation {
		return &gardencorev1beta1.ControllerInstallation{
			Spec: gardencorev1beta1.ControllerInstallationSpec{SeedRef: &corev1.ObjectReference{Name: seed}},
		}
	}
	bastion := func(seed string) *operationsv1alpha1.Bastion {
		return &operationsv1alpha1.Bastion{ObjectMeta: meta("b"), Spec: operationsv1alpha1.BastionSpec{SeedName: &seed}}
	}
	managed := func(shoot string) *seedmanagementv1alpha1.ManagedSeed {
		return &seedmanagementv1alpha1.ManagedSeed{
			ObjectMeta: meta("m"), Spec: seedmanagementv1alpha1.ManagedSeedSpec{
				Shoot: &seedmanagementv1alpha1.Shoot{Name: shoot},
			},
		}
	}
	reported := aShoot(onSeed("one"), func(s *gardencorev1beta1.Shoot) {
		s.Finalizers = []string{gardencorev1beta1.GardenerName}
		s.Status.IsHibernated = true
	})
	labelled := aShoot(onSeed("one"), func(s *gardencorev1beta1.Shoot) { s.Labels = map[string]string{"a": "b"} })
	identities := securityv1alpha1.Resource("workloadidentities")
	token := func(kind, name string) write {
		sake := &securityv1alpha1.ContextObject{
			Kind: kind, APIVersion: "core.gardener.cloud/v1beta1", Namespace: new("garden-demo"), Name: name,
		}
		return write{
			identities, "token", &securityv1alpha1.TokenRequest{
				Spec: securityv1alpha1.TokenRequestSpec{ContextObject: sake},
			}, nil, "",
		}
	}
	core, operations, management := gardencorev1beta1.Resource, operationsv1alpha1.Resource,
		seedmanagementv1alpha1.Resource
	for name, test := range map[string]struct {
		write
		want string
	}{
		"others are not restricted": {write{core("shoots"), "", aShoot(onSeed("two")), nil, "jane"}, ""},
		"its shoot":                 {write{core("shoots"), "", reported, aShoot(onSeed("one")), ""}, ""},
		"its shoot's labels": {
			write{core("shoots"), "", labelled, aShoot(onSeed("one")), ""}, "metadata.labels[a]: not changed by seeds",
		},
		"its shoot, by an extension": {
			write{core("shoots"), "", labelled, aShoot(onSeed("one")), "system:serviceaccount:seed-one:x"},
			"labels of shoots are not changed",
		},
		"the status of its shoot": {write{core("shoots"), "status", reported, aShoot(onSeed("one")), ""}, ""},
		"another's shoot": {
			write{core("shoots"), "", aShoot(onSeed("two")), aShoot(onSeed("two")), ""},
			`spec.seedName is "two", not "one"`,
		},
		"gives its shoot away": {
			write{core("shoots"), "binding", aShoot(onSeed("two")), aShoot(onSeed("one")), ""},
			`spec.seedName is "two"`,
		},
		"changes its shoot": {
			write{core("shoots"), "", aShoot(onSeed("one"), workerless), aShoot(onSeed("one")), ""},
			"spec is not changed by seeds",
		},
		"makes a shoot": {
			write{core("shoots"), "", aShoot(onSeed("one")), nil, ""}, "not created or deleted by seeds",
		},
		"deletes its shoot": {
			write{core("shoots"), "", nil, aShoot(onSeed("one")), ""}, "not created or deleted by seeds",
		},
		"asks for a kubeconfig": {write{core("shoots"), "adminkubeconfig", nil, nil, ""}, ""},
		"itself": {
			write{core("seeds"), "", &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "one"}}, nil, ""}, "",
		},
		"another seed": {
			write{core("seeds"), "", &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "two"}}, nil, ""},
			`metadata.name is "two"`,
		},
		"its bucket": {write{core("backupbuckets"), "status", bucket("one"), bucket("one"), ""}, ""},
		"makes a bucket": {
			write{core("backupbuckets"), "", bucket("one"), nil, ""}, "not created or deleted by seeds",
		},
		"another's bucket": {write{core("backupbuckets"), "", bucket("two"), nil, ""}, "spec.seedName"},
		"takes a bucket": {
			write{core("backupbuckets"), "", bucket("one"), bucket("two"), ""}, "spec.seedName",
		},
		"deletes another's bucket": {write{core("backupbuckets"), "", nil, bucket("two"), ""}, "spec.seedName"},
		"its entry": {
			write{core("backupentries"), "status", entry("one", "one"), entry("one", "one"), ""}, "",
		},
		"makes the entry of its shoot": {write{core("backupentries"), "", made(nil), nil, ""}, ""},
		"makes an entry in another's bucket": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.Spec.BucketName = "bucket-two"
			}), nil, ""}, "spec.bucketName",
		},
		"makes an entry of another's shoot": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.Name = "shoot--demo--foreign--uid-foreign"
			}), nil, ""}, "no shoot of the seed in namespace garden-demo has the entry",
		},
		"makes an entry for another": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.Spec.SeedName, e.Status.SeedName = new("two"), new("one")
			}), nil, ""}, "spec.seedName",
		},
		"makes an entry with another purpose": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.Annotations[gardencorev1beta1.AnnotationShootPurpose] = "evaluation"
			}), nil, ""}, "metadata.annotations[shoot.gardener.cloud/purpose]",
		},
		"makes an entry with a label": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.Labels = map[string]string{"a": "b"}
			}), nil, ""}, "metadata.labels[a]",
		},
		"makes an entry with an owner": {
			write{core("backupentries"), "", made(func(e *gardencorev1beta1.BackupEntry) {
				e.OwnerReferences = []metav1.OwnerReference{{Name: "s"}}
			}), nil, ""}, "metadata.ownerReferences",
		},
		"deletes its entry": {write{core("backupentries"), "", nil, entry("one", "one"), ""}, ""},
		"deletes another's entry": {
			write{core("backupentries"), "", nil, entry("two", "two"), ""}, "spec.seedName",
		},
		"an entry that is leaving it": {
			write{core("backupentries"), "status", entry("two", "one"), entry("two", "one"), ""}, "",
		},
		"gives its entry away": {
			write{core("backupentries"), "", entry("two", "one"), entry("one", "one"), ""},
			"spec is not changed by seeds",
		},
		"its installation": {
			write{core("controllerinstallations"), "status", installation("one"), installation("one"), ""}, "",
		},
		"another's installation": {
			write{core("controllerinstallations"), "status", installation("two"), installation("two"), ""},
			"spec.seedRef.name",
		},
		"an installation of nobody": {
			write{
				core("controllerinstallations"), "", &gardencorev1beta1.ControllerInstallation{},
				&gardencorev1beta1.ControllerInstallation{}, "",
			}, "spec.seedRef.name",
		},
		"the state of its shoot": {
			write{core("shootstates"), "", &gardencorev1beta1.ShootState{ObjectMeta: meta("member1")}, nil, ""}, "",
		},
		"the state of another's": {
			write{core("shootstates"), "", &gardencorev1beta1.ShootState{ObjectMeta: meta("foreign")}, nil, ""},
			"spec.seedName of shoot garden-demo/foreign",
		},
		"the state of no shoot": {
			write{core("shootstates"), "", &gardencorev1beta1.ShootState{ObjectMeta: meta("nobody")}, nil, ""},
			"there is no shoot garden-demo/nobody",
		},
		"a secret of its shoot": {
			write{
				core("internalsecrets"), "", &gardencorev1beta1.InternalSecret{ObjectMeta: meta("member1.ca-client")},
				nil, "",
			}, "",
		},
		"a secret of another's": {
			write{
				core("internalsecrets"), "", nil,
				&gardencorev1beta1.InternalSecret{ObjectMeta: meta("foreign.ca-client")}, "",
			}, "garden-demo/foreign",
		},
		"a token for its shoot": {token("Shoot", "member1"), ""},
		"a token for another's": {
			token("Shoot", "foreign"), "spec.contextObject: spec.seedName of shoot garden-demo/foreign",
		},
		"a token for no shoot": {
			token("Shoot", "nobody"), "spec.contextObject: there is no shoot garden-demo/nobody",
		},
		"a token for a seed": {token("Seed", "one"), "spec.contextObject must be the Shoot"},
		"a token for nothing": {
			write{identities, "token", &securityv1alpha1.TokenRequest{}, nil, ""},
			"spec.contextObject must be the Shoot",
		},
		"its bastion": {
			write{operations("bastions"), "status", bastion("one"), bastion("one"), ""}, "",
		},
		"another's bastion": {
			write{operations("bastions"), "status", bastion("two"), bastion("two"), ""}, "spec.seedName",
		},
		"its managed seed": {
			write{management("managedseeds"), "status", managed("member1"), managed("member1"), ""}, "",
		},
		"another's managed seed": {
			write{management("managedseeds"), "status", managed("foreign"), managed("foreign"), ""},
			"garden-demo/foreign",
		},
		"a cloud profile": {
			write{core("cloudprofiles"), "", &gardencorev1beta1.CloudProfile{}, nil, ""}, "not written by seeds",
		},
		"a binding": {
			write{core("secretbindings"), "", nil, &gardencorev1beta1.SecretBinding{ObjectMeta: meta("b")}, ""},
			"not written by seeds",
		},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, plugin.Validate(t.Context(), test.attributes(), nil), test.want)
		})
	}
}
