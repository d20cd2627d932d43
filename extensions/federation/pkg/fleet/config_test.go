package fleet

import (
	"slices"
	"strings"
	"testing"
)

func TestSettingsOfAFleet(t *testing.T) {
	const head = "apiVersion: federation.extensions.trellis.garden/v1alpha1\nkind: FleetConfig\n"
	for name, tc := range map[string]struct {
		config string
		want   []string
		err    string
	}{
		"none":       {"", nil, ""},
		"no setting": {head, nil, ""},
		"all": {head + `
skippedNamespaces: "kube-.*|secret-.*"
memory: 1Gi
clusters: {probeInterval: 5s, surveyInterval: 20s, failureThreshold: 1m, successThreshold: 10s}
promiseLapse: 30m
failover:
  after: 0s
  evictionsPerSecond: "0.5"
  gracefulEvictionTimeout: 5m
  failBack: Never
  failBackWindow: 1h
  failBacksPerHour: 10
  failBacksPerClusterPerHour: 5
deletionBudget: {percent: 100, atLeast: 0, window: 1m}
`, []string{
			"--skipped-propagating-namespaces=kube-.*|secret-.*",
			"--cluster-status-update-frequency=5s", "--cluster-survey-interval=20s", "--cluster-failure-threshold=1m0s",
			"--cluster-success-threshold=10s",
			"--promise-lapse=30m0s", "--cluster-failover-after=0s", "--resource-eviction-rate=0.5",
			"--graceful-eviction-timeout=5m0s", "--fail-back=Never", "--fail-back-window=1h0m0s",
			"--fail-back-limit=10", "--fail-back-limit-per-cluster=5", "--deletion-budget-percent=100",
			"--deletion-budget-at-least=0", "--deletion-budget-window=1m0s",
		}, ""},
		"another kind": {"kind: Deployment", nil, "providerConfig: Invalid value"},
		"unknown field": {
			head + "failovr: {}", nil, "spec.extensions[federation].providerConfig.failovr: Forbidden: there is no " +
				"such field",
		},
		"unknown within": {
			head + "failover: {before: {a: 1}}", nil,
			"providerConfig.failover.before: Forbidden: there is no such field",
		},
		"no quantity": {
			head + "memory: 1Gx", nil,
			`spec.extensions[federation].providerConfig.memory: Invalid value: "1Gx": quantities must match`,
		},
		"no quantity here": {
			head + "failover: {after: 1m, evictionsPerSecond: many}", nil,
			`providerConfig.failover.evictionsPerSecond: Invalid value: "many": quantities must match`,
		},
		"no duration": {
			head + "clusters: {surveyInterval: 20}", nil,
			"providerConfig.clusters.surveyInterval: Invalid value: 20: must be of type string, not number",
		},
		"no such duration": {
			head + "clusters: {surveyInterval: 20 s}", nil,
			`providerConfig.clusters.surveyInterval: Invalid value: "20 s": time: unknown unit`,
		},
		"no number": {
			head + "deletionBudget: {percent: 5%}", nil,
			`providerConfig.deletionBudget.percent: Invalid value: "5%": must be of type int32, not string`,
		},
		"no object": {
			head + "deletionBudget: 5", nil,
			"providerConfig.deletionBudget: Invalid value: 5: must be an object, not number",
		},
		"an object": {head + "memory: {limit: 1Gi}", nil, "providerConfig.memory: Invalid value"},
		"twice": {
			head + "memory: 1Gi\nmemory: 2Gi", nil,
			`providerConfig: error converting YAML to JSON: yaml: unmarshal errors:`,
		},
		"a list": {"[1]", nil, "spec.extensions[federation].providerConfig: "},
		"regular": {
			head + `skippedNamespaces: "("`, nil, "spec.extensions[federation].providerConfig.skippedNamespaces",
		},
		"too little": {
			head + "memory: 1Mi", nil, "providerConfig.memory: Invalid value: \"1Mi\": must be from 64Mi to 8Gi",
		},
		"too much": {
			head + "memory: 9Gi", nil, "providerConfig.memory: Invalid value: \"9Gi\": must be from 64Mi to 8Gi",
		},
		"negative": {head + "failover: {after: -1s}", nil, "providerConfig.failover.after"},
		"no time to start": {
			head + "promiseLapse: 59s", nil,
			`spec.extensions[federation].providerConfig.promiseLapse: Invalid value: "59s": must be at least 1m0s`,
		},
		"negative rate": {
			head + `failover: {evictionsPerSecond: "-1"}`, nil, "providerConfig.failover.evictionsPerSecond",
		},
		"other mode": {
			head + "failover: {failBack: Maybe}", nil, `providerConfig.failover.failBack: Unsupported value: "Maybe"`,
		},
		"too many percent": {head + "deletionBudget: {percent: 101}", nil, "providerConfig.deletionBudget.percent"},
	} {
		config, err := ParseConfig([]byte(tc.config))
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: error %v, want %q", name, err, tc.err)
		}
		if err == nil && !slices.Equal(Arguments(config), tc.want) {
			t.Errorf("%s: arguments %q, want %q", name, Arguments(config), tc.want)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte("apiVersion: federation.extensions.trellis.garden/v1alpha1\nkind: FleetConfig\nmemory: 1Gi"))
	f.Add([]byte(`{"kind": "FleetConfig", "failover": {"evictionsPerSecond": "1e9", "after": "9999999h"}}`))
	f.Add([]byte("failover: {evictionsPerSecond: x}\nmemory: {a: [1]}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		config, err := ParseConfig(raw)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "spec.extensions[federation].providerConfig") &&
				!strings.HasPrefix(err.Error(), "[spec.extensions[federation].providerConfig") {
				t.Errorf("the error doesn't name a field: %v", err)
			}
			return
		}
		for _, argument := range Arguments(config) {
			if !strings.HasPrefix(argument, "--") || !strings.Contains(argument, "=") {
				t.Errorf("argument %q", argument)
			}
		}
	})
}
