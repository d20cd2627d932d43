// Package csrapprover approves certificates that are asked for in the clusters that a seed hosts, where nobody within
// could decide about them:
//
//   - those that kubelets of shoots serve with. kube-controller-manager approves the certificates with which kubelets
//     authenticate, but not these, because it cannot know which addresses a node has. The Machine objects in the seed
//     say which nodes are ours.
//   - those with which accepted agents of a fleet's members replace their own. The API server does not look into
//     requests, so who may approve those of agents may approve a certificate for anybody that an agent asks for. A
//     federation process handles what users and members give it, and must not have that right.
//
// Requests are watched without an informer and queued without a controller: whoever may make them chooses their size
// and their number. An informer would keep all of all of them; here a little is kept of each, and of a bounded number.
package csrapprover
