package coredns

import (
	"fmt"
	"regexp"
	"strings"
)

// corefile is the configuration.
func corefile(v Values) string {
	return fmt.Sprintf(`.:%d {
    errors
    health :%d
    ready :%d
%s    kubernetes %s in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    prometheus :%d
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30
    reload
    loadbalance
}
`, dnsPort, healthPort, readinessPort, rewriting(v.CommonSuffixes, v.ClusterDomain), v.ClusterDomain, metricsPort)
}

// rewriting answers look-ups of names with a common suffix at once. Pods ask for names with few dots by all of their
// search path first, <name>.<namespace>.svc.<domain> before all others; that question is answered as if it were for the
// name alone.
func rewriting(suffixes []string, domain string) string {
	var rules strings.Builder
	for _, suffix := range suffixes {
		fmt.Fprintf(&rules, "    rewrite stop name regex %s {1} answer auto\n", searched(suffix, domain))
	}
	return rules.String()
}

// searched matches the first question for a name with the suffix, and captures the name. A suffix that begins with a
// dot stands for the names below it, another one for itself as well.
func searched(suffix, domain string) string {
	below := `.+\.`
	if !strings.HasPrefix(suffix, ".") {
		below = `(?:.+\.)?`
	}
	return `^(` + below + regexp.QuoteMeta(strings.TrimPrefix(suffix, ".")) + `)\.[^.]+\.svc\.` +
		regexp.QuoteMeta(domain) + `\.?$`
}
