package workloadidentity

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// Claims is what a token says of the garden: whose it is, and for the sake of which objects.
type Claims struct {
	WorkloadIdentity Reference  `json:"workloadIdentity"`
	Shoot            *Reference `json:"shoot,omitempty"`
	Project          *Reference `json:"project,omitempty"`
	Seed             *Reference `json:"seed,omitempty"`
	BackupBucket     *Reference `json:"backupBucket,omitempty"`
	BackupEntry      *Reference `json:"backupEntry,omitempty"`
}

// Reference names an object.
type Reference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid"`
}

func referenceTo(object metav1.Object) *Reference {
	return &Reference{Name: object.GetName(), Namespace: object.GetNamespace(), UID: string(object.GetUID())}
}

// Reader reads what the server has stored.
type Reader interface {
	Get(ctx context.Context, resource schema.GroupResource, namespace, name string) (runtime.Object, error)
	List(ctx context.Context, resource schema.GroupResource, namespace string,
		selector fields.Selector) (runtime.Object, error)
}

// resolver adds to claims what belongs to a context object.
type resolver struct{ reader Reader }

func contextPath() *field.Path { return field.NewPath("spec", "contextObject") }

// resolve adds the context object, and what it belongs to. Mistakes in the request come back as errors of a field.
func (r resolver) resolve(ctx context.Context, object *securityv1alpha1.ContextObject,
	claims *Claims) (*field.Error, error) {
	version, err := schema.ParseGroupVersion(object.APIVersion)
	if err != nil || version.Group != gardencorev1beta1.GroupName {
		return field.NotSupported(contextPath().Child("apiVersion"), object.APIVersion,
			[]string{gardencorev1beta1.SchemeGroupVersion.String()}), nil
	}
	add, ok := map[string]func(context.Context, *securityv1alpha1.ContextObject, *Claims) error{
		"Shoot": r.addShoot, "Seed": r.addSeed, "BackupBucket": r.addBackupBucket, "BackupEntry": r.addBackupEntry,
	}[object.Kind]
	if !ok {
		return field.NotSupported(contextPath().Child("kind"), object.Kind,
			[]string{"BackupBucket", "BackupEntry", "Seed", "Shoot"}), nil
	}
	err = add(ctx, object, claims)
	var fieldErr *field.Error
	switch {
	case errors.As(err, &fieldErr):
		return fieldErr, nil
	case apierrors.IsNotFound(err):
		return field.Invalid(contextPath().Child("name"), object.Name, err.Error()), nil
	}
	return nil, err
}

func (r resolver) addShoot(ctx context.Context, object *securityv1alpha1.ContextObject, claims *Claims) error {
	shoot, err := read[*gardencorev1beta1.Shoot](ctx, r.reader, "shoots", ptr.Deref(object.Namespace, ""), object.Name)
	if err != nil {
		return err
	}
	if err := checkUID(object, shoot); err != nil {
		return err
	}
	claims.Shoot = referenceTo(shoot)
	if err := r.addSeedNamed(ctx, shoot.Spec.SeedName, claims); err != nil {
		return err
	}
	return r.addProjectOf(ctx, shoot.Namespace, claims)
}

func (r resolver) addSeed(ctx context.Context, object *securityv1alpha1.ContextObject, claims *Claims) error {
	if err := r.addSeedNamed(ctx, &object.Name, claims); err != nil {
		return err
	}
	return checkUIDIs(object, claims.Seed.UID)
}

func (r resolver) addBackupBucket(ctx context.Context, object *securityv1alpha1.ContextObject, claims *Claims) error {
	bucket, err := read[*gardencorev1beta1.BackupBucket](ctx, r.reader, "backupbuckets", "", object.Name)
	if err != nil {
		return err
	}
	if err := checkUID(object, bucket); err != nil {
		return err
	}
	claims.BackupBucket = referenceTo(bucket)
	return r.addSeedNamed(ctx, bucket.Spec.SeedName, claims)
}

func (r resolver) addBackupEntry(ctx context.Context, object *securityv1alpha1.ContextObject, claims *Claims) error {
	entry, err := read[*gardencorev1beta1.BackupEntry](ctx, r.reader, "backupentries", ptr.Deref(object.Namespace, ""),
		object.Name)
	if err != nil {
		return err
	}
	if err := checkUID(object, entry); err != nil {
		return err
	}
	claims.BackupEntry = referenceTo(entry)
	bucket, err := read[*gardencorev1beta1.BackupBucket](ctx, r.reader, "backupbuckets", "", entry.Spec.BucketName)
	if err != nil {
		return err
	}
	claims.BackupBucket = referenceTo(bucket)
	if err := r.addSeedNamed(ctx, entry.Spec.SeedName, claims); err != nil {
		return err
	}
	return r.addShootOf(ctx, entry, claims)
}

// addShootOf adds the shoot whose backups an entry holds, unless it is gone: entries outlive their shoots.
func (r resolver) addShootOf(ctx context.Context, entry *gardencorev1beta1.BackupEntry, claims *Claims) error {
	for _, owner := range entry.OwnerReferences {
		if owner.Kind != "Shoot" {
			continue
		}
		shoot, err := read[*gardencorev1beta1.Shoot](ctx, r.reader, "shoots", entry.Namespace, owner.Name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		// a shoot that was created anew has other backups; entries are named <technical id>--<uid>
		if entry.Name != shoot.Status.TechnicalID+"--"+string(shoot.UID) {
			return nil
		}
		claims.Shoot = referenceTo(shoot)
		return r.addProjectOf(ctx, shoot.Namespace, claims)
	}
	return nil
}

func (r resolver) addSeedNamed(ctx context.Context, name *string, claims *Claims) error {
	if ptr.Deref(name, "") == "" {
		return nil
	}
	seed, err := read[*gardencorev1beta1.Seed](ctx, r.reader, "seeds", "", *name)
	if err != nil {
		return err
	}
	claims.Seed = referenceTo(seed)
	return nil
}

func (r resolver) addProjectOf(ctx context.Context, namespace string, claims *Claims) error {
	projects, err := r.reader.List(ctx, gardencorev1beta1.Resource("projects"), "",
		fields.OneTermEqualSelector("spec.namespace", namespace))
	if err != nil {
		return err
	}
	list, ok := projects.(*gardencorev1beta1.ProjectList)
	if !ok {
		return fmt.Errorf("projects are listed as %T", projects)
	}
	if len(list.Items) == 0 {
		return fmt.Errorf("no project has the namespace %s", namespace)
	}
	claims.Project = referenceTo(&list.Items[0])
	return nil
}

func checkUID(object *securityv1alpha1.ContextObject, found metav1.Object) error {
	return checkUIDIs(object, string(found.GetUID()))
}

func checkUIDIs(object *securityv1alpha1.ContextObject, uid string) error {
	if string(object.UID) == uid {
		return nil
	}
	return field.Invalid(contextPath().Child("uid"), object.UID,
		fmt.Sprintf("%s %s has the UID %s: it was created anew", object.Kind, object.Name, uid))
}

func read[T runtime.Object](ctx context.Context, reader Reader, resource, namespace, name string) (T, error) {
	var none T
	object, err := reader.Get(ctx, gardencorev1beta1.Resource(resource), namespace, name)
	if err != nil {
		return none, err
	}
	typed, ok := object.(T)
	if !ok {
		return none, fmt.Errorf("%s %s is stored as %T", resource, strings.TrimPrefix(namespace+"/"+name, "/"), object)
	}
	return typed, nil
}
