package apiserver

import (
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// apisPackage is where our own types live. Only these have an internal form.
const apisPackage = "github.com/trellis-garden/trellis/pkg/apis/"

var (
	// Scheme knows the kinds that the server serves. Each type is its own internal form, so nothing is ever converted:
	// what a client sent, what admission sees and what etcd stores is one Go type. The one exception is
	// core.gardener.cloud/v1, whose ControllerDeployment is converted from and to that of v1beta1.
	Scheme = newScheme(true)
	// wireScheme knows the same kinds without their internal forms. Published OpenAPI is named by it.
	wireScheme = newScheme(false)

	// Codecs encodes and decodes what Scheme knows.
	Codecs = serializer.NewCodecFactory(Scheme)
	// ParameterCodec decodes query parameters.
	ParameterCodec = runtime.NewParameterCodec(Scheme)
)

// storedVersions are the versions that objects are stored in, one for each group.
var storedVersions = []schema.GroupVersion{
	gardencorev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
	seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
}

func newScheme(withInternal bool) *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		gardencorev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme,
		seedmanagementv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme, authenticationv1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	// the payload of scale subresources
	scheme.AddKnownTypes(autoscalingv1.SchemeGroupVersion, &autoscalingv1.Scale{})
	if withInternal {
		for _, version := range append([]schema.GroupVersion{authenticationv1alpha1.SchemeGroupVersion},
			storedVersions...) {
			registerAsInternal(scheme, version)
		}
		scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal},
			&autoscalingv1.Scale{})
	}
	for _, versions := range [][]schema.GroupVersion{
		{gardencorev1.SchemeGroupVersion, gardencorev1beta1.SchemeGroupVersion}, {securityv1alpha1.SchemeGroupVersion},
		{seedmanagementv1alpha1.SchemeGroupVersion}, {operationsv1alpha1.SchemeGroupVersion},
		{authenticationv1alpha1.SchemeGroupVersion},
	} {
		utilruntime.Must(scheme.SetVersionPriority(versions...))
	}
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})
	return scheme
}

// registerAsInternal makes every type of a version its own internal form. The API machinery converts requests to the
// internal version and answers from it; with one type for both, conversion only sets or clears the type's name.
func registerAsInternal(scheme *runtime.Scheme, version schema.GroupVersion) {
	internal := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
	for kind, goType := range scheme.KnownTypes(version) {
		if strings.HasPrefix(goType.PkgPath(), apisPackage) {
			scheme.AddKnownTypeWithName(internal.WithKind(kind), reflect.New(goType).Interface().(runtime.Object))
		}
	}
}

// newStorageCodec writes objects to etcd as protobuf, which is smaller and faster than JSON, and reads what is there in
// either: gardens of earlier versions stored JSON.
func newStorageCodec() runtime.Codec {
	protobuf, found := runtime.SerializerInfoForMediaType(Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !found {
		panic("the codec factory has no protobuf")
	}
	return Codecs.CodecForVersions(protobuf.Serializer, Codecs.UniversalDeserializer(),
		schema.GroupVersions(storedVersions), runtime.InternalGroupVersioner)
}
