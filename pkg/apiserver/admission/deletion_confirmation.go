package admission

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// DeletionConfirmationName is the name of the plugin that asks for a confirmation before something valuable is deleted.
const DeletionConfirmationName = "DeletionConfirmation"

// confirmedResources are not deleted unless they carry the confirmation.
var confirmedResources = sets.New(
	corev1beta1.Resource("projects"),
	corev1beta1.Resource("shoots"),
	corev1beta1.Resource("shootstates"),
)

// deletionConfirmation refuses to delete projects and shoots by a slip of the hand.
type deletionConfirmation struct{ *admission.Handler }

var _ admission.ValidationInterface = &deletionConfirmation{}

func newDeletionConfirmation() *deletionConfirmation {
	return &deletionConfirmation{Handler: admission.NewHandler(admission.Delete)}
}

// Validate implements admission.ValidationInterface. It is also called for each object of a collection.
func (d *deletionConfirmation) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !confirmedResources.Has(a.GetResource().GroupResource()) || a.GetSubresource() != "" {
		return nil
	}
	object, ok := a.GetOldObject().(metav1.Object)
	if !ok || isConfirmed(object) {
		return nil
	}
	return admission.NewForbidden(a, needsConfirmation(a.GetResource().GroupResource(), object))
}

func isConfirmed(object metav1.Object) bool {
	confirmed, err := strconv.ParseBool(object.GetAnnotations()[corev1beta1.ConfirmationDeletion])
	return err == nil && confirmed
}

func needsConfirmation(resource schema.GroupResource, object metav1.Object) error {
	namespace := ""
	if object.GetNamespace() != "" {
		namespace = " -n " + object.GetNamespace()
	}
	return fmt.Errorf("deletion has to be confirmed first: kubectl%s annotate %s %s %s=true",
		namespace, resource.Resource, object.GetName(), corev1beta1.ConfirmationDeletion)
}
