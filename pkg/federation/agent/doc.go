// Package agent runs beside a member of a fleet and serves it with outbound connections only: to the fleet, and to the
// member itself.
//
// It is invited by the fleet (trellisctl register), and the owner of the member accepts the fleet by applying the
// manifest. With the invitation it asks for a client certificate, which somebody accepts in the fleet (trellisctl
// accept) who has compared the fingerprint of its key. From then on it watches the Works of its member, applies them by
// the code that the fleet applies those of other members with, reports what became of them and how the member is,
// renews its Lease in the fleet and, in time, its certificate. When the member has left the fleet, the agent removes
// itself.
//
// All that it has to remember is in the Secret "credentials" in its namespace, so it may be stopped at any point.
package agent
