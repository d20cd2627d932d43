package fleet

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/strictyaml"
)

// leastPromiseLapse is as long as agents may take to report of pods that there are already. Room is not given to others
// before that.
const leastPromiseLapse = time.Minute

// ParseConfig reads a provider configuration; none means the defaults. Errors name the field of the Shoot.
func ParseConfig(raw []byte) (apis.FleetConfig, error) {
	path := field.NewPath("spec", "extensions").Key(Type).Child("providerConfig")
	config := apis.FleetConfig{}
	if len(raw) == 0 {
		return config, nil
	}
	if err := strictyaml.Unmarshal(raw, &config, path); err != nil {
		return apis.FleetConfig{}, err
	}
	return config, validate(config, path).ToAggregate()
}

// validate refuses what the controllers could not work with.
func validate(c apis.FleetConfig, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	if c.APIVersion != apis.APIVersion || c.Kind != apis.FleetConfigKind {
		problems = append(problems, field.Invalid(path, c.APIVersion+" "+c.Kind,
			"must be of apiVersion "+apis.APIVersion+" and kind "+apis.FleetConfigKind))
	}
	if c.SkippedNamespaces != nil {
		if _, err := regexp.Compile(*c.SkippedNamespaces); err != nil {
			problems = append(problems, field.Invalid(path.Child("skippedNamespaces"), *c.SkippedNamespaces,
				err.Error()))
		}
	}
	if c.Memory != nil && (c.Memory.Cmp(leastMemory) < 0 || c.Memory.Cmp(mostMemory) > 0) {
		problems = append(problems, field.Invalid(path.Child("memory"), c.Memory.String(),
			fmt.Sprintf("must be from %s to %s", &leastMemory, &mostMemory)))
	}
	clusters, failover, budget := path.Child("clusters"), path.Child("failover"), path.Child("deletionBudget")
	for _, check := range []*field.Error{
		atLeast(clusters.Child("probeInterval"), c.Clusters.ProbeInterval, time.Second),
		atLeast(clusters.Child("surveyInterval"), c.Clusters.SurveyInterval, time.Second),
		atLeast(clusters.Child("failureThreshold"), c.Clusters.FailureThreshold, 0),
		atLeast(clusters.Child("successThreshold"), c.Clusters.SuccessThreshold, 0),
		atLeast(path.Child("promiseLapse"), c.PromiseLapse, leastPromiseLapse),
		atLeast(failover.Child("after"), c.Failover.After, 0),
		atLeast(failover.Child("gracefulEvictionTimeout"), c.Failover.GracefulEvictionTimeout, time.Second),
		atLeast(failover.Child("failBackWindow"), c.Failover.FailBackWindow, 0),
		within(failover.Child("failBacksPerHour"), c.Failover.FailBacksPerHour, 0, 1_000_000),
		within(failover.Child("failBacksPerClusterPerHour"), c.Failover.FailBacksPerClusterPerHour, 0, 1_000_000),
		within(budget.Child("percent"), c.DeletionBudget.Percent, 0, 100),
		within(budget.Child("atLeast"), c.DeletionBudget.AtLeast, 0, 1_000_000),
		atLeast(budget.Child("window"), c.DeletionBudget.Window, time.Second),
	} {
		if check != nil {
			problems = append(problems, check)
		}
	}
	if rate := c.Failover.EvictionsPerSecond; rate != nil && rate.Sign() < 0 {
		problems = append(problems, field.Invalid(failover.Child("evictionsPerSecond"), rate.String(),
			"must not be negative"))
	}
	if mode := c.Failover.FailBack; mode != nil && *mode != "Automatic" && *mode != "Never" {
		problems = append(problems, field.NotSupported(failover.Child("failBack"), *mode,
			[]string{"Automatic", "Never"}))
	}
	return problems
}

// atLeast checks a duration.
func atLeast(path *field.Path, value *metav1.Duration, least time.Duration) *field.Error {
	if value == nil || value.Duration >= least {
		return nil
	}
	return field.Invalid(path, value.Duration.String(), "must be at least "+least.String())
}

// within checks a number.
func within(path *field.Path, value *int32, least, most int32) *field.Error {
	if value == nil || *value >= least && *value <= most {
		return nil
	}
	return field.Invalid(path, *value, fmt.Sprintf("must be from %d to %d", least, most))
}

// Arguments are the flags of the federation controllers that differ from their defaults.
func Arguments(c apis.FleetConfig) []string {
	var arguments []string
	add := func(flag, value string) { arguments = append(arguments, "--"+flag+"="+value) }
	duration := func(flag string, value *metav1.Duration) {
		if value != nil {
			add(flag, value.Duration.String())
		}
	}
	number := func(flag string, value *int32) {
		if value != nil {
			add(flag, strconv.Itoa(int(*value)))
		}
	}
	text := func(flag string, value *string) {
		if value != nil {
			add(flag, *value)
		}
	}
	text("skipped-propagating-namespaces", c.SkippedNamespaces)
	duration("cluster-status-update-frequency", c.Clusters.ProbeInterval)
	duration("cluster-survey-interval", c.Clusters.SurveyInterval)
	duration("cluster-failure-threshold", c.Clusters.FailureThreshold)
	duration("cluster-success-threshold", c.Clusters.SuccessThreshold)
	duration("promise-lapse", c.PromiseLapse)
	duration("cluster-failover-after", c.Failover.After)
	if rate := c.Failover.EvictionsPerSecond; rate != nil {
		add("resource-eviction-rate", strconv.FormatFloat(rate.AsApproximateFloat64(), 'g', -1, 64))
	}
	duration("graceful-eviction-timeout", c.Failover.GracefulEvictionTimeout)
	text("fail-back", c.Failover.FailBack)
	duration("fail-back-window", c.Failover.FailBackWindow)
	number("fail-back-limit", c.Failover.FailBacksPerHour)
	number("fail-back-limit-per-cluster", c.Failover.FailBacksPerClusterPerHour)
	number("deletion-budget-percent", c.DeletionBudget.Percent)
	number("deletion-budget-at-least", c.DeletionBudget.AtLeast)
	duration("deletion-budget-window", c.DeletionBudget.Window)
	return arguments
}

const (
	// defaultMemory is the target of controllers for which none is set.
	defaultMemory = 512 << 20
	// freeMemory is the limit of those whose target is not half of it already.
	freeMemory = 4 << 30
)

var (
	leastMemory = resource.MustParse("64Mi")
	// mostMemory is enough for some 200,000 objects in two members each; no tenant needs the memory of a whole node.
	mostMemory = resource.MustParse("8Gi")
)

// memoryTarget is how much memory the controllers may use before they collect garbage ever more eagerly, in bytes:
// GOMEMLIMIT.
func memoryTarget(c apis.FleetConfig) int64 {
	if c.Memory == nil {
		return defaultMemory
	}
	return c.Memory.Value()
}

// memoryRequest is what the seed counts: all that a tenant wants beyond the default.
func memoryRequest(c apis.FleetConfig) resource.Quantity {
	if target := memoryTarget(c); target > defaultMemory {
		return *resource.NewQuantity(target, resource.BinarySI)
	}
	return resource.MustParse("48Mi")
}

// memoryLimit ends a process that needs eight times its target, long before it does hardly anything but collect
// garbage. Large ones get no more than twice what they request, as control planes do.
func memoryLimit(c apis.FleetConfig) resource.Quantity {
	target := memoryTarget(c)
	return *resource.NewQuantity(min(8*target, max(2*target, freeMemory)), resource.BinarySI)
}
