package v1beta1

import "slices"

// errorMeaning is what follows from an error code.
type errorMeaning struct {
	code ErrorCode
	// needsChange: trying again is of no use before somebody changes something, so the Shoot is Failed.
	needsChange bool
	// isCertain: the error need not even be seen to last.
	isCertain bool
	// allowsForceDeletion: an orderly deletion may never end, so it may be given up.
	allowsForceDeletion bool
}

// errorMeanings has all codes.
var errorMeanings = []errorMeaning{
	{code: ErrorInfraUnauthenticated, needsChange: true, isCertain: true, allowsForceDeletion: true},
	{code: ErrorInfraUnauthorized, needsChange: true, isCertain: true, allowsForceDeletion: true},
	{code: ErrorInfraQuotaExceeded, needsChange: true},
	{code: ErrorInfraRateLimitsExceeded, needsChange: true},
	{code: ErrorInfraDependencies, needsChange: true, allowsForceDeletion: true},
	{code: ErrorRetryableInfraDependencies},
	{code: ErrorInfraResourcesDepleted},
	{code: ErrorCleanupClusterResources, allowsForceDeletion: true},
	{code: ErrorConfigurationProblem, needsChange: true, isCertain: true, allowsForceDeletion: true},
	{code: ErrorRetryableConfigurationProblem},
	{code: ErrorProblematicWebhook, needsChange: true},
}

func (c ErrorCode) meaning() errorMeaning {
	i := slices.IndexFunc(errorMeanings, func(m errorMeaning) bool { return m.code == c })
	if i < 0 {
		return errorMeaning{}
	}
	return errorMeanings[i]
}

// NeedsChange says that trying again is of no use before somebody changes something.
func (c ErrorCode) NeedsChange() bool { return c.meaning().needsChange }

// IsCertain says that waiting whether the error goes away by itself is of no use.
func (c ErrorCode) IsCertain() bool { return c.meaning().isCertain }

// AllowsForceDeletion says that a deletion which fails with this code may be forced.
func (c ErrorCode) AllowsForceDeletion() bool { return c.meaning().allowsForceDeletion }

// forceDeletionCodes lists the codes that allow to force a deletion, sorted.
func forceDeletionCodes() []ErrorCode {
	var codes []ErrorCode
	for _, meaning := range errorMeanings {
		if meaning.allowsForceDeletion {
			codes = append(codes, meaning.code)
		}
	}
	slices.Sort(codes)
	return codes
}
