package admission

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// DeletionConfirmationName is the name of the plugin that asks for a confirmation before something valuable is deleted.
const DeletionConfirmationName = "DeletionConfirmation"

// confirmedResources are not deleted unless they carry the confirmation.
var confirmedResources = sets.New(
	gardencorev1beta1.Resource("projects"),
	gardencorev1beta1.Resource("shoots"),
	gardencorev1beta1.Resource("shootstates"),
)

// deletionConfirmation refuses to delete projects and shoots by a slip of the hand. Where a project asks for a second
// person, it remembers who confirmed, and lets somebody else delete.
type deletionConfirmation struct {
	*admission.Handler
	dependent
}

var (
	_ admission.MutationInterface   = &deletionConfirmation{}
	_ admission.ValidationInterface = &deletionConfirmation{}
)

func newDeletionConfirmation() *deletionConfirmation {
	return &deletionConfirmation{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete)}
}

// Admit implements admission.MutationInterface.
func (d *deletionConfirmation) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if shoot, old, ok := written[*gardencorev1beta1.Shoot](a); ok {
		rememberConfirmer(shoot, old, a.GetUserInfo().GetName())
	}
	return nil
}

// rememberConfirmer notes who confirmed the deletion of a shoot. Nobody else can write the note.
func rememberConfirmer(shoot, old *gardencorev1beta1.Shoot, caller string) {
	switch {
	case !isConfirmed(shoot):
		delete(shoot.Annotations, gardencorev1beta1.DeletionConfirmedBy)
	case old == nil || !isConfirmed(old):
		setAnnotation(shoot, gardencorev1beta1.DeletionConfirmedBy, caller)
	case old.Annotations[gardencorev1beta1.DeletionConfirmedBy] == "":
		delete(shoot.Annotations, gardencorev1beta1.DeletionConfirmedBy)
	default:
		setAnnotation(shoot, gardencorev1beta1.DeletionConfirmedBy,
			old.Annotations[gardencorev1beta1.DeletionConfirmedBy])
	}
}

// Validate implements admission.ValidationInterface. It is also called for each object of a collection.
func (d *deletionConfirmation) Validate(ctx context.Context, a admission.Attributes,
	_ admission.ObjectInterfaces) error {
	if a.GetOperation() != admission.Delete || !confirmedResources.Has(a.GetResource().GroupResource()) ||
		a.GetSubresource() != "" {
		return nil
	}
	object, ok := a.GetOldObject().(metav1.Object)
	if !ok {
		return nil
	}
	if !isConfirmed(object) {
		return admission.NewForbidden(a, needsConfirmation(a.GetResource().GroupResource(), object))
	}
	shoot, ok := object.(*gardencorev1beta1.Shoot)
	if !ok || shoot.DeletionTimestamp != nil {
		return nil
	}
	project, err := projectOf(ctx, d.Reader, shoot.Namespace)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if err := checkSecondApproval(shoot, project, a.GetUserInfo()); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func isConfirmed(object metav1.Object) bool {
	confirmed, err := strconv.ParseBool(object.GetAnnotations()[gardencorev1beta1.ConfirmationDeletion])
	return err == nil && confirmed
}

func needsConfirmation(resource schema.GroupResource, object metav1.Object) error {
	return fmt.Errorf("deletion has to be confirmed first: %s=true",
		annotate(resource.Resource, object, gardencorev1beta1.ConfirmationDeletion))
}

// annotate returns the command that begins to annotate an object.
func annotate(resource string, object metav1.Object, annotation string) string {
	namespace := ""
	if object.GetNamespace() != "" {
		namespace = " -n " + object.GetNamespace()
	}
	return fmt.Sprintf("kubectl%s annotate %s %s %s", namespace, resource, object.GetName(), annotation)
}

// checkSecondApproval makes sure that somebody else than the caller confirmed the deletion, where the project wants
// that.
func checkSecondApproval(shoot *gardencorev1beta1.Shoot, project *gardencorev1beta1.Project, caller user.Info) error {
	if project == nil || actsForTheGarden(caller) || !needsSecondApproval(shoot, project, caller) {
		return nil
	}
	switch confirmer := shoot.Annotations[gardencorev1beta1.DeletionConfirmedBy]; confirmer {
	case "":
		return fmt.Errorf("project %q asks for two persons to delete this shoot, and nobody knows who confirmed it: "+
			"remove annotation %s, let one person set it again and another delete",
			project.Name, gardencorev1beta1.ConfirmationDeletion)
	case caller.GetName():
		return fmt.Errorf("project %q asks for two persons to delete this shoot: %q confirmed the deletion, so "+
			"somebody else has to delete it", project.Name, confirmer)
	}
	return nil
}

func needsSecondApproval(shoot *gardencorev1beta1.Shoot, project *gardencorev1beta1.Project, caller user.Info) bool {
	_, _, err := serviceaccount.SplitUsername(caller.GetName())
	isServiceAccount := err == nil
	for i := range project.Spec.DualApprovalForDeletion {
		rule := &project.Spec.DualApprovalForDeletion[i]
		if rule.Resource != "shoots" || !selects(&rule.Selector, shoot.Labels) {
			continue
		}
		if !isServiceAccount || ptr.Deref(rule.IncludeServiceAccounts, true) {
			return true
		}
	}
	return false
}
