// Package csrapprover approves the certificates that kubelets of shoots serve with. kube-controller-manager approves the
// certificates with which kubelets authenticate, but not these, because it cannot know which addresses a node has. The
// Machine objects in the seed say which nodes are ours.
package csrapprover
