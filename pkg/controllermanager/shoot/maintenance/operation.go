package maintenance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// askedFor tells whether somebody wants the shoot to be maintained now.
func askedFor(shoot *gardencorev1beta1.Shoot) bool {
	return slices.Contains(operations(shoot, gardencorev1beta1.GardenerOperation),
		gardencorev1beta1.GardenerOperationMaintain)
}

func operations(shoot *gardencorev1beta1.Shoot, annotation string) []string {
	var result []string
	for operation := range strings.SplitSeq(shoot.Annotations[annotation], ";") {
		if operation = strings.TrimSpace(operation); operation != "" && !slices.Contains(result, operation) {
			result = append(result, operation)
		}
	}
	return result
}

func setOperations(shoot *gardencorev1beta1.Shoot, operations []string) {
	if len(operations) == 0 {
		delete(shoot.Annotations, gardencorev1beta1.GardenerOperation)
		return
	}
	if shoot.Annotations == nil {
		shoot.Annotations = map[string]string{}
	}
	shoot.Annotations[gardencorev1beta1.GardenerOperation] = strings.Join(operations, ";")
}

// dropRequest takes back the request for a maintenance once it is answered.
func dropRequest(shoot *gardencorev1beta1.Shoot) {
	setOperations(shoot, slices.DeleteFunc(operations(shoot, gardencorev1beta1.GardenerOperation),
		func(operation string) bool {
			return operation == gardencorev1beta1.GardenerOperationMaintain
		}))
}

// Operate asks for what a maintenance does beside updates: the operations that were put off to the window, and
// rotations that are due, else a reconciliation; a retry for a shoot that failed while its changes were confined to the
// window. What the API would refuse by now is skipped. It returns what it asked for if that is worth telling.
func Operate(shoot *gardencorev1beta1.Shoot, now time.Time) []string {
	dropRequest(shoot)
	last := shoot.Status.LastOperation
	switch {
	case last == nil:
		return nil
	case last.State == gardencorev1beta1.LastOperationStateFailed:
		return retry(shoot)
	}
	putOff := operations(shoot, gardencorev1beta1.GardenerMaintenanceOperation)
	delete(shoot.Annotations, gardencorev1beta1.GardenerMaintenanceOperation)
	told := rotate(shoot, now)
	if len(putOff)+len(told) == 0 {
		add(shoot, gardencorev1beta1.GardenerOperationReconcile)
		return nil
	}
	for _, operation := range putOff {
		if problem := gardencorev1beta1.OperationProblem(shoot, operation); problem != "" {
			told = append(told, fmt.Sprintf("Operation %q skipped: it %s", operation, problem))
			continue
		}
		add(shoot, operation)
		told = append(told, fmt.Sprintf("Operation %q started", operation))
	}
	return told
}

func retry(shoot *gardencorev1beta1.Shoot) []string {
	if shoot.Annotations[gardencorev1beta1.ShootNeedsRetryOperation] != "true" {
		return nil
	}
	delete(shoot.Annotations, gardencorev1beta1.ShootNeedsRetryOperation)
	setOperations(shoot, []string{gardencorev1beta1.GardenerOperationRetry})
	return []string{fmt.Sprintf("Operation %q started", gardencorev1beta1.GardenerOperationRetry)}
}

func add(shoot *gardencorev1beta1.Shoot, operation string) {
	if present := operations(shoot, gardencorev1beta1.GardenerOperation); !slices.Contains(present, operation) {
		setOperations(shoot, append(present, operation))
	}
}
