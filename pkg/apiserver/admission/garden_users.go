package admission

import (
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	corev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// gardenUserPrefix begins the names of the garden's own processes and of gardenlets.
const gardenUserPrefix = "gardener.cloud:system:"

// actsForTheGarden tells the garden's own processes and gardenlets from people and their automation.
func actsForTheGarden(caller user.Info) bool {
	return strings.HasPrefix(caller.GetName(), gardenUserPrefix) || slices.Contains(caller.GetGroups(), corev1beta1.SeedsGroup)
}
