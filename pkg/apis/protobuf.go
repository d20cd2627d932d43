package apis

import (
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// Clients of controller-runtime speak protobuf for kinds that they are told of, and JSON for all others, such as those
// of CustomResourceDefinitions. Whoever imports this package speaks protobuf with garden-apiserver.
func init() {
	for _, add := range gardenGroups {
		utilruntime.Must(apiutil.AddToProtobufScheme(add))
	}
}

// gardenGroups are the groups that garden-apiserver serves.
var gardenGroups = []func(*runtime.Scheme) error{
	gardencorev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme,
	seedmanagementv1alpha1.AddToScheme,
	operationsv1alpha1.AddToScheme, authenticationv1alpha1.AddToScheme,
}
