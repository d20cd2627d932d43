package registration

// FleetAccount is the user that the federation process is in its fleet.
const FleetAccount = "system:serviceaccount:kube-system:federation"
