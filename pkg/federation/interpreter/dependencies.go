package interpreter

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
)

// dependencies collects what an object of a namespace refers to, each once.
type dependencies struct {
	namespace string
	list      []configv1alpha1.DependentObjectReference
}

// add ignores empty names: the field that could refer to something doesn't.
func (d *dependencies) add(kind string, names ...string) {
	for _, name := range names {
		if name != "" {
			d.list = append(d.list, configv1alpha1.DependentObjectReference{
				APIVersion: "v1", Kind: kind, Namespace: d.namespace, Name: name,
			})
		}
	}
}

// sorted gives the references without doubles.
func (d *dependencies) sorted() []configv1alpha1.DependentObjectReference {
	slices.SortFunc(d.list, func(a, b configv1alpha1.DependentObjectReference) int {
		return cmp.Or(strings.Compare(a.APIVersion, b.APIVersion), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(d.list, func(a, b configv1alpha1.DependentObjectReference) bool {
		return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name &&
			a.LabelSelector == nil && b.LabelSelector == nil
	})
}

// PodDependencies are the ConfigMaps, Secrets, PersistentVolumeClaims and the ServiceAccount that a pod of a namespace
// refers to. What every namespace has by itself is not among them.
func PodDependencies(pod *corev1.PodSpec, namespace string) []configv1alpha1.DependentObjectReference {
	d := &dependencies{namespace: namespace}
	d.addPod(pod)
	return d.sorted()
}

func (d *dependencies) addPod(pod *corev1.PodSpec) {
	for _, secret := range pod.ImagePullSecrets {
		d.add("Secret", secret.Name)
	}
	d.addAccount(cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount))
	for i := range pod.InitContainers {
		d.addEnvironment(pod.InitContainers[i].EnvFrom, pod.InitContainers[i].Env)
	}
	for i := range pod.Containers {
		d.addEnvironment(pod.Containers[i].EnvFrom, pod.Containers[i].Env)
	}
	for i := range pod.EphemeralContainers {
		d.addEnvironment(pod.EphemeralContainers[i].EnvFrom, pod.EphemeralContainers[i].Env)
	}
	for i := range pod.Volumes {
		d.addVolume(&pod.Volumes[i].VolumeSource)
	}
}

// addDecoded adds those of a pod that may be absent.
func (d *dependencies) addDecoded(raw fields) error {
	if raw == nil {
		return nil
	}
	pod, err := decodePod(raw)
	if err == nil {
		d.addPod(pod)
	}
	return err
}

// addAccount leaves out the one that every namespace has.
func (d *dependencies) addAccount(name string) {
	if name != "default" {
		d.add("ServiceAccount", name)
	}
}

// remove takes out what the object makes itself.
func (d *dependencies) remove(kind, name string) {
	d.list = slices.DeleteFunc(d.list,
		func(r configv1alpha1.DependentObjectReference) bool { return r.Kind == kind && r.Name == name })
}

func (d *dependencies) addEnvironment(from []corev1.EnvFromSource, variables []corev1.EnvVar) {
	for _, source := range from {
		if source.ConfigMapRef != nil {
			d.addConfigMap(source.ConfigMapRef.Name)
		}
		if source.SecretRef != nil {
			d.add("Secret", source.SecretRef.Name)
		}
	}
	for _, variable := range variables {
		if variable.ValueFrom == nil {
			continue
		}
		if ref := variable.ValueFrom.ConfigMapKeyRef; ref != nil {
			d.addConfigMap(ref.Name)
		}
		if ref := variable.ValueFrom.SecretKeyRef; ref != nil {
			d.add("Secret", ref.Name)
		}
	}
}

// addConfigMap leaves out the one with the authority of the API server, which every cluster keeps in every namespace.
func (d *dependencies) addConfigMap(name string) {
	if name != "kube-root-ca.crt" {
		d.add("ConfigMap", name)
	}
}

func (d *dependencies) addVolume(v *corev1.VolumeSource) {
	switch {
	case v.ConfigMap != nil:
		d.addConfigMap(v.ConfigMap.Name)
	case v.Secret != nil:
		d.add("Secret", v.Secret.SecretName)
	case v.PersistentVolumeClaim != nil:
		d.add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
	case v.Projected != nil:
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				d.addConfigMap(source.ConfigMap.Name)
			}
			if source.Secret != nil {
				d.add("Secret", source.Secret.Name)
			}
		}
	case v.CSI != nil && v.CSI.NodePublishSecretRef != nil:
		d.add("Secret", v.CSI.NodePublishSecretRef.Name)
	default:
		d.addOlderVolume(v)
	}
}

// addOlderVolume knows the volumes that bring a Secret with their credentials along.
func (d *dependencies) addOlderVolume(v *corev1.VolumeSource) {
	switch {
	case v.AzureFile != nil:
		d.add("Secret", v.AzureFile.SecretName)
	case v.CephFS != nil && v.CephFS.SecretRef != nil:
		d.add("Secret", v.CephFS.SecretRef.Name)
	case v.Cinder != nil && v.Cinder.SecretRef != nil:
		d.add("Secret", v.Cinder.SecretRef.Name)
	case v.FlexVolume != nil && v.FlexVolume.SecretRef != nil:
		d.add("Secret", v.FlexVolume.SecretRef.Name)
	case v.RBD != nil && v.RBD.SecretRef != nil:
		d.add("Secret", v.RBD.SecretRef.Name)
	case v.ScaleIO != nil && v.ScaleIO.SecretRef != nil:
		d.add("Secret", v.ScaleIO.SecretRef.Name)
	case v.ISCSI != nil && v.ISCSI.SecretRef != nil:
		d.add("Secret", v.ISCSI.SecretRef.Name)
	case v.StorageOS != nil && v.StorageOS.SecretRef != nil:
		d.add("Secret", v.StorageOS.SecretRef.Name)
	}
}

// podSpec decodes the pod of an object; nil if there is none.
func (k kind) podSpec(object *unstructured.Unstructured) (*corev1.PodSpec, error) {
	var raw fields
	switch {
	case k.podsOf != nil:
		raw = k.podsOf(object)
	case k.pods != nil:
		raw = fields(object.Object).part(k.pods...).part("spec")
	}
	if raw == nil {
		return nil, nil
	}
	pod, err := decodePod(raw)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return pod, nil
}

func dependenciesOf(object *unstructured.Unstructured) ([]configv1alpha1.DependentObjectReference, error) {
	k := kindOf(object)
	d := &dependencies{namespace: object.GetNamespace()}
	pod, err := k.podSpec(object)
	if err != nil {
		return nil, err
	}
	if pod != nil {
		d.addPod(pod)
	}
	if k.parts != nil {
		for _, p := range k.parts(object) {
			if err := d.addDecoded(p.template.part("spec")); err != nil {
				return nil, fmt.Errorf("%s of %s %s: %w", p.name, object.GetKind(), object.GetName(), err)
			}
		}
	}
	spec := section(object, "spec")
	for _, path := range k.secrets {
		d.add("Secret", spec.part(path[:len(path)-1]...).text(path[len(path)-1]))
	}
	for _, path := range k.accounts {
		d.addAccount(spec.part(path[:len(path)-1]...).text(path[len(path)-1]))
	}
	if k.dependencies != nil {
		if err := k.dependencies(object, d); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return d.sorted(), nil
}

// maxDependencies is how many references of one object are followed.
const maxDependencies = 1000

// CheckDependencies says what is wrong with references that a script or webhook gave.
func CheckDependencies(references []configv1alpha1.DependentObjectReference) error {
	if len(references) > maxDependencies {
		return fmt.Errorf("%d dependencies; at most %d are possible", len(references), maxDependencies)
	}
	for i, reference := range references {
		switch {
		case reference.APIVersion == "":
			return fmt.Errorf("dependency %d has no apiVersion", i+1)
		case reference.Kind == "":
			return fmt.Errorf("dependency %d has no kind", i+1)
		case reference.Name == "" && reference.LabelSelector == nil:
			return fmt.Errorf("dependency %d (%s) has neither name nor labelSelector", i+1, reference.Kind)
		}
	}
	return nil
}
