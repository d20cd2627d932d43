package kubeapiserver

import (
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
)

const (
	pkiMount    = "/etc/kubernetes/pki"
	configMount = "/etc/kubernetes/config"
	// authenticationMount is a folder of its own: a mount of single files would not change with them.
	authenticationMount = "/etc/kubernetes/authentication"

	fileAdmission      = "admission.yaml"
	fileAuditPolicy    = "audit-policy.yaml"
	fileAuthentication = "authentication.yaml"
	fileAuthorization  = "authorization.yaml"
	fileEgressSelector = "egress-selector.yaml"
	fileEgressCA       = "egress-ca.crt"
	fileEncryption     = "encryption.yaml"

	authorizationWebhookFolder = "authorization-webhook"
	authorizationKubeconfig    = configMount + "/" + authorizationWebhookFolder + "/kubeconfig"
	// authorizersFolder and admissionFolder hold kubeconfigs of users, by the name of the authorizer or plugin.
	authorizersFolder = "authorizers"
	admissionFolder   = "admission"
)

// Arguments returns the flags of kube-apiserver, sorted.
func Arguments(v Values) []string {
	v = v.withDefaults()
	flags := map[string]string{}
	for _, group := range []map[string]string{
		servingFlags(v), authenticationFlags(v), authorizationFlags(v), auditFlags(), etcdFlags(), resourceFlags(v),
		nodeFlags(v), optionalFlags(v),
		loggingFlags(v), v.ExtraArgs,
	} {
		maps.Copy(flags, group)
	}
	return append(component.SortedFlags(flags), acceptedIssuers(v)...)
}

// acceptedIssuers repeat the flag of the issuer; the first one signs.
func acceptedIssuers(v Values) []string {
	var arguments []string
	for _, issuer := range v.ServiceAccounts.AcceptedIssuers {
		arguments = append(arguments, "--service-account-issuer="+issuer)
	}
	return arguments
}

func servingFlags(v Values) map[string]string {
	return map[string]string{
		"secure-port":                    strconv.Itoa(int(Port)),
		"tls-cert-file":                  pkiMount + "/server/tls.crt",
		"tls-private-key-file":           pkiMount + "/server/tls.key",
		"tls-min-version":                v.TLSMinVersion,
		"service-cluster-ip-range":       strings.Join(v.ServiceNetworks, ","),
		"goaway-chance":                  "0",
		"max-requests-inflight":          strconv.Itoa(v.MaxRequestsInflight),
		"max-mutating-requests-inflight": strconv.Itoa(v.MaxMutatingRequestsInflight),
		"profiling":                      "false",
		// Endpoints learn of a stopping replica before it refuses connections.
		"shutdown-delay-duration":    "5s",
		"shutdown-send-retry-after":  "true",
		"enable-aggregator-routing":  strconv.FormatBool(v.AggregatorRouting),
		"encryption-provider-config": configMount + "/encryption/" + fileEncryption,
		"proxy-client-cert-file":     pkiMount + "/front-proxy-client/tls.crt",
		"proxy-client-key-file":      pkiMount + "/front-proxy-client/tls.key",
		"allow-privileged":           "true",
		"event-ttl":                  v.EventTTL.String(),
	}
}

// authorizationFlags: a webhook needs a file.
func authorizationFlags(v Values) map[string]string {
	if hasAuthorizationFile(v) {
		return map[string]string{"authorization-config": configMount + "/files/" + fileAuthorization}
	}
	return map[string]string{"authorization-mode": authorizationMode(v)}
}

func authorizationMode(v Values) string {
	if v.IsWorkerless {
		return "RBAC"
	}
	return "Node,RBAC"
}

func hasAuthorizationFile(v Values) bool {
	return v.AuthorizationWebhook != nil || len(v.Authorizers) > 0
}

// auditFlags write the log of audits beside the process's own, from where the seed's collector of logs takes both.
func auditFlags() map[string]string {
	return map[string]string{
		"audit-policy-file": configMount + "/files/" + fileAuditPolicy,
		"audit-log-path":    "-",
	}
}

func loggingFlags(v Values) map[string]string {
	flags := map[string]string{}
	if v.Verbosity > 0 {
		flags["v"] = strconv.Itoa(int(v.Verbosity))
	}
	if v.HTTPAccessVerbosity > 0 {
		flags["vmodule"] = "httplog=" + strconv.Itoa(int(v.HTTPAccessVerbosity))
	}
	return flags
}

// authenticationFile holds the rule which paths anonymous requests reach, and issuers.
func authenticationFile(v Values) string {
	if v.AuthenticationConfigMap != "" {
		return path.Join(authenticationMount, apiserverconfig.KeyConfig)
	}
	return configMount + "/files/" + fileAuthentication
}

func authenticationFlags(v Values) map[string]string {
	flags := map[string]string{
		"authentication-config":                   authenticationFile(v),
		"client-ca-file":                          pkiMount + "/ca-client/bundle.crt",
		"enable-bootstrap-token-auth":             strconv.FormatBool(!v.IsWorkerless),
		"requestheader-client-ca-file":            pkiMount + "/ca-front-proxy/bundle.crt",
		"requestheader-allowed-names":             frontProxyUser,
		"requestheader-username-headers":          "X-Remote-User",
		"requestheader-group-headers":             "X-Remote-Group",
		"requestheader-extra-headers-prefix":      "X-Remote-Extra-",
		"service-account-issuer":                  v.ServiceAccounts.Issuer,
		"service-account-key-file":                pkiMount + "/service-account-bundle/bundle.pub",
		"service-account-signing-key-file":        pkiMount + "/service-account/id_rsa",
		"service-account-extend-token-expiration": strconv.FormatBool(v.ServiceAccounts.ExtendTokenExpiration),
		"api-audiences":                           strings.Join(v.APIAudiences, ","),
	}
	if longest := v.ServiceAccounts.MaxTokenExpiration; longest > 0 {
		flags["service-account-max-token-expiration"] = longest.String()
	}
	return flags
}

func etcdFlags() map[string]string {
	server := func(role etcdcomponent.Role) string {
		return fmt.Sprintf("https://%s:%d", etcdcomponent.ClientServiceName(role), etcdcomponent.ClientPort)
	}
	return map[string]string{
		"etcd-servers":           server(etcdcomponent.Main),
		"etcd-servers-overrides": "/events#" + server(etcdcomponent.Events),
		"etcd-cafile":            pkiMount + "/ca-etcd/bundle.crt",
		"etcd-certfile":          pkiMount + "/etcd-client/tls.crt",
		"etcd-keyfile":           pkiMount + "/etcd-client/tls.key",
	}
}

func resourceFlags(v Values) map[string]string {
	flags := map[string]string{}
	enabled := slices.Clone(v.EnabledAdmissionPlugins)
	if !v.IsWorkerless {
		enabled = append(enabled, "NodeRestriction")
	}
	setList(flags, "enable-admission-plugins", enabled)
	setList(flags, "disable-admission-plugins", v.DisabledAdmissionPlugins)
	if len(v.AdmissionConfigs) > 0 {
		flags["admission-control-config-file"] = configMount + "/files/" + fileAdmission
	}
	if len(v.FeatureGates) > 0 {
		flags["feature-gates"] = component.Switches(v.FeatureGates)
	}
	if len(v.RuntimeConfig) > 0 {
		flags["runtime-config"] = component.Switches(v.RuntimeConfig)
	}
	return flags
}

func nodeFlags(v Values) map[string]string {
	if v.IsWorkerless {
		return nil
	}
	return map[string]string{
		"kubelet-certificate-authority":   pkiMount + "/ca-kubelet/bundle.crt",
		"kubelet-client-certificate":      pkiMount + "/kubelet-client/tls.crt",
		"kubelet-client-key":              pkiMount + "/kubelet-client/tls.key",
		"kubelet-preferred-address-types": "InternalIP,Hostname,ExternalIP",
	}
}

func optionalFlags(v Values) map[string]string {
	flags := map[string]string{}
	if v.AdvertiseAddress != "" {
		flags["advertise-address"] = v.AdvertiseAddress
	}
	if v.PublishedHostname != "" {
		// Without it the process names the advertise address, and without the port the one that it listens on.
		flags["external-hostname"] = net.JoinHostPort(v.PublishedHostname, publishedPort)
	}
	if hasEgressSelector(v) {
		flags["egress-selector-config-file"] = configMount + "/files/" + fileEgressSelector
	}
	if v.DefaultWatchCacheSize != nil {
		flags["default-watch-cache-size"] = strconv.Itoa(int(*v.DefaultWatchCacheSize))
	}
	var sizes []string
	for _, size := range v.WatchCacheSizes {
		sizes = append(sizes, fmt.Sprintf("%s#%d", size.Resource, size.Size))
	}
	setList(flags, "watch-cache-sizes", sizes)
	if v.NotReadyTolerationSeconds != nil {
		flags["default-not-ready-toleration-seconds"] = strconv.FormatInt(*v.NotReadyTolerationSeconds, 10)
	}
	if v.UnreachableTolerationSeconds != nil {
		flags["default-unreachable-toleration-seconds"] = strconv.FormatInt(*v.UnreachableTolerationSeconds, 10)
	}
	return flags
}

func setList(flags map[string]string, name string, values []string) {
	if len(values) > 0 {
		flags[name] = strings.Join(slices.Compact(slices.Sorted(slices.Values(values))), ",")
	}
}
