// Package registration makes clusters members of a fleet, and lets them leave: Join has the fleet talk to the cluster (push). It
// offers what trellisctl and the fleet's controllers share: the names of what is created on both sides, and the renewal of credentials.
package registration
