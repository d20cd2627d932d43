// Package registration makes clusters members of a fleet, and lets them leave: Join has the fleet talk to the cluster
// (push), Register invites it by an agent, which talks to the fleet once Accept says so (pull), and Unjoin ends either.
// It offers what trellisctl, the agent and the fleet's controllers share: the names of what is created on both sides,
// what each may do there, and the renewal of credentials.
package registration
