package extensionrights

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/keymutex"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
)

// namespaceLocks has one at a time change the rights in the namespace of a shoot. There is one gardenlet for a seed.
var namespaceLocks = keymutex.NewHashed(0)

// withLock runs work when nobody else is at work on the namespace.
func withLock(namespace string, work func() error) error {
	namespaceLocks.LockKey(namespace)
	defer func() { _ = namespaceLocks.UnlockKey(namespace) }()
	return work()
}

// Bind gives rights to those who serve a kind and type in the namespace of a shoot. It is called before an object is
// created (fresh) and again afterwards, as the Release of another object may have taken the rights back between.
func Bind(ctx context.Context, seed client.Client, namespace, pair string, fresh bool) error {
	if namespace == "" {
		return nil
	}
	return withLock(namespace, func() error {
		object, err := shootNamespace(ctx, seed, namespace)
		if err != nil || object == nil {
			return err
		}
		if noted, _ := parseNote(object); noted.Has(pair) && !fresh {
			return nil
		}
		pairs, err := pairsOf(ctx, seed, object)
		if err != nil {
			return err
		}
		return settle(ctx, seed, object, pairs.Insert(pair), ensureBeside)
	})
}

// Ensure gives the rights again that somebody may have taken away, before an extension is asked to remove what it has
// made. It leaves out namespaces that are being deleted: a Release that was interrupted has begun that.
func Ensure(ctx context.Context, seed client.Client, namespace string) error {
	if namespace == "" {
		return nil
	}
	return withLock(namespace, func() error {
		object, err := shootNamespace(ctx, seed, namespace)
		if err != nil || object == nil {
			return err
		}
		pairs, err := pairsOf(ctx, seed, object)
		if err != nil {
			return err
		}
		return settle(ctx, seed, object, pairs, ensureBesideUnlessEnding)
	})
}

// Release takes rights back when the last object of a kind and type has gone from the namespace of a shoot.
func Release(ctx context.Context, seed client.Client, namespace, kind, extensionType string) error {
	if namespace == "" || extensionType == "" {
		return nil
	}
	return withLock(namespace, func() error {
		object, err := shootNamespace(ctx, seed, namespace)
		if err != nil || object == nil {
			return err
		}
		types, err := typesOf(ctx, seed, namespace, kind)
		if err != nil || types.Has(extensionType) {
			return err
		}
		pairs, err := pairsOf(ctx, seed, object)
		if err != nil {
			return err
		}
		return release(ctx, seed, object, pairs, Pair(kind, extensionType))
	})
}

// release removes the namespaces that only the pair needed, and its rights.
func release(ctx context.Context, seed client.Client, namespace *corev1.Namespace, pairs sets.Set[string],
	pair string) error {
	all, err := roles(ctx, seed)
	if err != nil {
		return err
	}
	left := pairs.Clone().Delete(pair)
	kept := sets.New[string]()
	for _, r := range serving(all, left) {
		kept.Insert(r.prefix)
	}
	for _, r := range serving(all, sets.New(pair)) {
		if kept.Has(r.prefix) || r.prefix == "" {
			continue
		}
		beside := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.prefix + namespace.Name}}
		if err := client.IgnoreNotFound(seed.Delete(ctx, beside)); err != nil {
			return fmt.Errorf("deleting Namespace %s: %w", beside.Name, err)
		}
	}
	return settle(ctx, seed, namespace, left, ensureBesideUnlessEnding)
}

// Beside lists the namespaces beside that of a shoot.
func Beside(ctx context.Context, seed client.Client, namespace string) ([]corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	if err := seed.List(ctx, list, client.MatchingLabels{LabelShootNamespace: namespace}); err != nil {
		return nil, fmt.Errorf("listing the namespaces beside %s: %w", namespace, err)
	}
	return list.Items, nil
}

// Forget removes the namespaces beside that of a shoot, which is about to be deleted.
func Forget(ctx context.Context, seed client.Client, namespace string) error {
	beside, err := Beside(ctx, seed, namespace)
	if err != nil {
		return err
	}
	for i := range beside {
		if err := client.IgnoreNotFound(seed.Delete(ctx, &beside[i])); err != nil {
			return fmt.Errorf("deleting Namespace %s: %w", beside[i].Name, err)
		}
	}
	return nil
}

// Sync gives and takes rights in the namespaces of all shoots, and to the Secrets of BindSecret, after the ClusterRoles
// of an extension may have changed.
func Sync(ctx context.Context, seed client.Client) error {
	list := &corev1.NamespaceList{}
	if err := seed.List(ctx, list,
		client.MatchingLabels{gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleShoot}); err != nil {
		return fmt.Errorf("listing the namespaces of shoots: %w", err)
	}
	for i := range list.Items {
		if err := Ensure(ctx, seed, list.Items[i].Name); err != nil {
			return fmt.Errorf("rights of extensions in namespace %s: %w", list.Items[i].Name, err)
		}
	}
	return syncSecrets(ctx, seed)
}

// shootNamespace reads a namespace; nil if it is not that of a shoot, or is being deleted with all bindings in it.
func shootNamespace(ctx context.Context, seed client.Client, name string) (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	if err := seed.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	ofShoot := namespace.Labels[gardencorev1beta1.GardenRole] == gardencorev1beta1.GardenRoleShoot &&
		strings.HasPrefix(name, gardencorev1beta1.TechnicalIDPrefix)
	if !ofShoot || namespace.DeletionTimestamp != nil {
		return nil, nil
	}
	return namespace, nil
}

// parseNote returns the kinds and types that gardenlet has written into the namespace of a shoot; false if it has never
// noted any.
func parseNote(namespace *corev1.Namespace) (sets.Set[string], bool) {
	list, found := namespace.Annotations[resourcesAnnotation]
	return parse(list), found
}

// pairsOf are the kinds and types that gardenlet has noted; of a shoot of before there were notes, those of its
// objects.
func pairsOf(ctx context.Context, seed client.Client, namespace *corev1.Namespace) (sets.Set[string], error) {
	if pairs, everNoted := parseNote(namespace); everNoted {
		return pairs, nil
	}
	return present(ctx, seed, namespace.Name)
}

// present are the kinds and types of the objects of a namespace.
func present(ctx context.Context, seed client.Client, namespace string) (sets.Set[string], error) {
	pairs := sets.New[string]()
	for _, kind := range []string{
		extensionsv1alpha1.InfrastructureResource, extensionsv1alpha1.ControlPlaneResource,
		extensionsv1alpha1.WorkerResource, extensionsv1alpha1.NetworkResource,
		extensionsv1alpha1.OperatingSystemConfigResource, extensionsv1alpha1.DNSRecordResource,
		extensionsv1alpha1.ContainerRuntimeResource,
		extensionsv1alpha1.ExtensionResource, extensionsv1alpha1.BastionResource,
	} {
		types, err := typesOf(ctx, seed, namespace, kind)
		if err != nil {
			return nil, err
		}
		for extensionType := range types {
			pairs.Insert(Pair(kind, extensionType))
		}
	}
	return pairs, nil
}

// typesOf are the types of the objects of a kind.
func typesOf(ctx context.Context, seed client.Client, namespace, kind string) (sets.Set[string], error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(extensionsv1alpha1.SchemeGroupVersion.WithKind(kind + "List"))
	err := seed.List(ctx, list, client.InNamespace(namespace))
	if err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	types := sets.New[string]()
	for _, item := range list.Items {
		extensionType, _, _ := unstructured.NestedString(item.Object, "spec", "type")
		types.Insert(extensionType)
	}
	return types, nil
}

// ensure makes a namespace beside that of a shoot, and says whether it is there to stay.
type ensure func(ctx context.Context, seed client.Client, name, shoot string) (stays bool, err error)

// settle notes the pairs, and gives those who serve them what they need.
func settle(ctx context.Context, seed client.Client, namespace *corev1.Namespace, pairs sets.Set[string],
	beside ensure) error {
	if before, everNoted := parseNote(namespace); !everNoted || !before.Equal(pairs) {
		patch := client.MergeFrom(namespace.DeepCopy())
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, resourcesAnnotation, format(pairs))
		if err := seed.Patch(ctx, namespace, patch); err != nil {
			return fmt.Errorf("noting the extensions of Namespace %s: %w", namespace.Name, err)
		}
	}
	all, err := roles(ctx, seed)
	if err != nil {
		return err
	}
	byPrefix := map[string][]role{"": nil}
	for _, r := range serving(all, pairs) {
		byPrefix[r.prefix] = append(byPrefix[r.prefix], r)
	}
	for prefix, wanted := range byPrefix {
		if prefix != "" {
			stays, err := beside(ctx, seed, prefix+namespace.Name, namespace.Name)
			if err != nil {
				return err
			}
			if !stays {
				continue
			}
		}
		if err := ensureBindings(ctx, seed, prefix+namespace.Name, wanted); err != nil {
			return err
		}
	}
	return nil
}

// errEnding is that of a namespace in which nothing can be made any more.
var errEnding = errors.New("it is being deleted, and not gone yet")

func ensureBeside(ctx context.Context, seed client.Client, name, shoot string) (stays bool, err error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = controllerutil.CreateOrPatch(ctx, seed, namespace, func() error {
		if namespace.DeletionTimestamp != nil {
			return errEnding
		}
		namespace.Labels = component.Merge(namespace.Labels, map[string]string{
			gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleInfra, LabelShootNamespace: shoot,
			component.LabelPodSecurity: component.PodSecurityPrivileged,
		})
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("Namespace %s: %w", name, err)
	}
	return true, nil
}

func ensureBesideUnlessEnding(ctx context.Context, seed client.Client, name, shoot string) (stays bool, err error) {
	stays, err = ensureBeside(ctx, seed, name, shoot)
	if errors.Is(err, errEnding) {
		return false, nil
	}
	return stays, err
}

// ensureBindings makes the bindings of a namespace those of the roles.
func ensureBindings(ctx context.Context, seed client.Client, namespace string, wanted []role) error {
	list := &rbacv1.RoleBindingList{}
	if err := seed.List(ctx, list, client.InNamespace(namespace), client.HasLabels{LabelRegistration}); err != nil {
		return fmt.Errorf("listing the RoleBindings of extensions: %w", err)
	}
	existing := map[string]*rbacv1.RoleBinding{}
	for i := range list.Items {
		existing[list.Items[i].Name] = &list.Items[i]
	}
	for _, r := range wanted {
		binding := r.binding(namespace)
		if found := existing[binding.Name]; found == nil || !sameBinding(found, binding) {
			if err := replace(ctx, seed, binding); err != nil {
				return err
			}
		}
		delete(existing, binding.Name)
	}
	for _, binding := range existing {
		if err := component.Delete(ctx, seed, binding); err != nil {
			return err
		}
	}
	return nil
}

func sameBinding(a, b *rbacv1.RoleBinding) bool {
	return a.RoleRef == b.RoleRef && apiequality.Semantic.DeepEqual(a.Subjects, b.Subjects) &&
		a.Labels[LabelRegistration] == b.Labels[LabelRegistration]
}

// replace creates a binding, in the place of one of the same name: what a binding refers to cannot be changed.
func replace(ctx context.Context, seed client.Client, binding *rbacv1.RoleBinding) error {
	err := seed.Create(ctx, binding.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		if err = component.Delete(ctx, seed, binding.DeepCopy()); err == nil {
			err = seed.Create(ctx, binding.DeepCopy())
		}
	}
	if err != nil {
		return fmt.Errorf("RoleBinding %s: %w", client.ObjectKeyFromObject(binding), err)
	}
	return nil
}
