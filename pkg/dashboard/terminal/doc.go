// Package terminal gives users of the dashboard shells in clusters: in a pod that is made, watched and removed with the
// user's own credential. docs/contracts/dashboard.md says what pages send and get, and what there is in a cluster.
package terminal
