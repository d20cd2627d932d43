// Package apiserverconfig reads what users give their kube-apiserver as files: audit policies, authentication and
// authorization configurations in ConfigMaps of their project, and kubeconfigs of webhooks in Secrets. It is refused
// here, with the reason, what kube-apiserver would refuse, or what would let a user reach into the seed.
// garden-apiserver asks before it accepts a Shoot, gardenlet before it hands the files to kube-apiserver.
package apiserverconfig
