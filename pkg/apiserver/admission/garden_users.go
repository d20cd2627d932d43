package admission

import (
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trellis-garden/trellis/pkg/apiserver/seedauthorizer"
)

// gardenUserPrefix begins the names of the garden's own processes and of gardenlets.
const gardenUserPrefix = "gardener.cloud:system:"

// actsForTheGarden tells the garden's own processes, gardenlets and their extensions from people and their automation.
func actsForTheGarden(caller user.Info) bool {
	_, isSeed := seedauthorizer.IdentityOf(caller)
	return isSeed || strings.HasPrefix(caller.GetName(), gardenUserPrefix)
}
