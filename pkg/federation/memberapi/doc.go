// Package memberapi serves the API of members through that of their fleet: clusters/{name}/proxy of
// cluster.karmada.io/v1alpha1.
//
// Clusters are stored by a custom resource definition, which has no subresource of free form. So while this server
// runs, the fleet's kube-apiserver sends it all requests for the version v1alpha1, by an APIService that the server
// writes when it is ready and deletes when it ends. It answers the subresource itself, as the user that asks, and hands
// everything else back to the kube-apiserver under another version of the same definition, as that user too. Without
// the APIService the kube-apiserver serves v1alpha1 by itself, but for the subresource.
package memberapi
