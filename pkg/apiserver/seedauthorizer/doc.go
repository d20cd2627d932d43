// Package seedauthorizer decides what a gardenlet, and the extensions of its seed, may do in the garden: only what
// belongs to their seed, as the Node authorizer of Kubernetes does for kubelets.
//
// Graph knows which objects of the garden are reachable from which seed, and is kept up to date from watches (see
// Feeds). Authorize is a table of verbs per resource over that graph. Handler answers SubjectAccessReviews of the
// garden's kube-apiserver, so that it decides about Secrets, ConfigMaps and Leases as garden-apiserver does about its
// own kinds. What is in the objects that a gardenlet writes is checked by the admission plugin SeedRestriction.
//
// Nothing here forbids: what does not belong to a seed is left to the next authorizer, RBAC, where seeds have no rights
// but those of every user.
package seedauthorizer
