package decoding

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// MaxItems is the most items of any list or map of a body, as it is of an object.
	MaxItems = gardencorev1beta1.MaxItems
	// MaxMergedItems is the most items of a list or map of a patch that is merged item by item: of a strategic merge
	// patch, an apply patch, and the values of a JSON patch.
	MaxMergedItems = gardencorev1beta1.MaxMergedItems
	// MaxMetadata is the most labels, annotations, finalizers, owner references or entries of managedFields.
	MaxMetadata = 1000
	// MaxValues is the most values of a body, all objects, lists and scalars counted, those in raw extensions as well;
	// managed fields are not.
	MaxValues = 50_000
	// MaxMergedValues is the most values of a strategic merge patch or an apply patch: merging one takes ten times as
	// long as storing it.
	MaxMergedValues = 20_000
	// MaxDepth is how deep objects and lists may be nested.
	MaxDepth = 64
	// MaxOperations is the most operations of a JSON patch.
	MaxOperations = 1000
	// MaxCopies is the most bytes that the copy operations of a JSON patch may add to an object.
	MaxCopies = 64 << 10
	// MaxManagedFields is the most bytes of metadata.managedFields as the server writes them, which clients send back.
	MaxManagedFields = 512 << 10
	// MaxUnsortedManagedFields is the same for entries in another order than that of the server. Reading them takes the
	// square of their number.
	MaxUnsortedManagedFields = 64 << 10
	// MaxWithoutKind is the most bytes of protobuf without a kind, whose values nobody can count.
	MaxWithoutKind = 16 << 10
	// MaxDeleteOptions is the most bytes that may come with a deletion.
	MaxDeleteOptions = 64 << 10
)

// refusal says why a body is not read. Either field is set, or code and message are.
type refusal struct {
	field   *field.Error
	code    int32
	message string
	// syntax says that the body is not in the format that it was read as.
	syntax bool
}

func (r *refusal) Error() string {
	if r.field != nil {
		return r.field.Error()
	}
	return r.message
}

func malformed(format string, arguments ...any) *refusal {
	return &refusal{code: http.StatusBadRequest, message: fmt.Sprintf(format, arguments...), syntax: true}
}

func tooLarge(format string, arguments ...any) *refusal {
	return &refusal{code: http.StatusRequestEntityTooLarge, message: fmt.Sprintf(format, arguments...)}
}

func tooDeep(path string) *refusal {
	return &refusal{
		code: http.StatusBadRequest, message: fmt.Sprintf("%s: objects and lists are nested deeper than %d", path,
			MaxDepth),
	}
}

// status returns the refusal as the API answers it, about an object of a resource.
func (r *refusal) status(resource schema.GroupResource, name string) *apierrors.StatusError {
	if r.field != nil {
		return apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: resource.Resource}, name,
			field.ErrorList{r.field})
	}
	if r.code == http.StatusRequestEntityTooLarge {
		return apierrors.NewRequestEntityTooLargeError(r.message)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Message: "the body of the request cannot be read: " + r.message,
	}}
}
