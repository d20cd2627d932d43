// Package tunnel is how the fleet asks for the API of a member that has an agent: by a connection that the agent has
// opened.
//
// The agent asks the fleet's API for the subresource attach of its Cluster (POST, with its own client certificate), and
// the kube-apiserver passes that on to a process of the federation as it does for exec: the connection is upgraded.
// Over it both speak HTTP/2 with the roles changed: the federation sends requests, and the agent answers what its
// member answers. HTTP/2 knows no upgrades, so a request for one says so by a header, and becomes a stream of bytes in
// both directions (docs/contracts/member-tunnel.md).
//
// Tunnels is the federation's end, Keeper and Door are the agent's. Who may ask, and for which member, is decided
// before (package memberapi); as whom the member is asked, behind the Door (package acting).
package tunnel
