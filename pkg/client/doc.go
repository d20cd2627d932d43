// Package client holds the generated Go clients of the garden's API, for programs of others as much as for our own: a
// typed clientset (clientset/versioned, with a fake for tests), listers and informers for the groups core, security,
// seedmanagement and operations. Requests for kubeconfigs and tokens are methods of the clients of Shoots and
// WorkloadIdentities. The clients speak protobuf with the server; a runtime.RawExtension therefore has to hold Raw, as
// JSON: protobuf leaves an Object out. Everything below this folder is made by `make generate`.
package client
