package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/errorcodes"
	"github.com/trellis-garden/trellis/pkg/flow"
)

// lastErrors turns the failure of a flow into the form of a Shoot's status: one entry per failed task, or one for an
// error that is not a task's.
func lastErrors(err error, now metav1.Time) []gardencorev1beta1.LastError {
	if err == nil {
		return nil
	}
	failures := flow.TaskErrors(err)
	if len(failures) == 0 {
		return []gardencorev1beta1.LastError{
			{Description: err.Error(), Codes: errorcodes.Of(err), LastUpdateTime: &now},
		}
	}
	var list []gardencorev1beta1.LastError
	for _, failure := range failures {
		list = append(list, gardencorev1beta1.LastError{
			Description: failure.Error(), TaskID: new(string(failure.TaskID)), Codes: errorcodes.Of(failure.Err),
			LastUpdateTime: &now,
		})
	}
	return list
}

// withoutTask returns the errors without those of a task that has succeeded in the meantime.
func withoutTask(list []gardencorev1beta1.LastError, task string) []gardencorev1beta1.LastError {
	return slices.DeleteFunc(slices.Clone(list),
		func(e gardencorev1beta1.LastError) bool { return ptr.Deref(e.TaskID, "") == task })
}

// hopeless says whether trying again cannot help before the user changes something.
func hopeless(list []gardencorev1beta1.LastError) bool {
	return slices.ContainsFunc(list, func(e gardencorev1beta1.LastError) bool {
		return errorcodes.NeedChange(e.Codes)
	})
}
