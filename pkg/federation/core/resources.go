package core

import "math"

// Resources are amounts of what pods ask for and nodes have: CPU in millicores, memory and storage in bytes, everything
// else in pieces.
type Resources struct {
	CPU     int64
	Memory  int64
	Storage int64
	Pods    int64
	// Other resources by name, such as nvidia.com/gpu.
	Other map[string]int64
}

// Minus takes away; nothing becomes less than zero.
func (r Resources) Minus(taken Resources) Resources {
	result := Resources{
		CPU: max(0, r.CPU-taken.CPU), Memory: max(0, r.Memory-taken.Memory),
		Storage: max(0, r.Storage-taken.Storage), Pods: max(0, r.Pods-taken.Pods), Other: r.Other,
	}
	if len(r.Other) == 0 || len(taken.Other) == 0 {
		return result
	}
	result.Other = make(map[string]int64, len(r.Other))
	for name, amount := range r.Other {
		result.Other[name] = max(0, amount-taken.Other[name])
	}
	return result
}

// Plus adds.
func (r Resources) Plus(more Resources) Resources {
	result := Resources{
		CPU: r.CPU + more.CPU, Memory: r.Memory + more.Memory, Storage: r.Storage + more.Storage,
		Pods: r.Pods + more.Pods,
	}
	if len(r.Other)+len(more.Other) == 0 {
		return result
	}
	result.Other = make(map[string]int64, len(r.Other)+len(more.Other))
	for name, amount := range r.Other {
		result.Other[name] = amount
	}
	for name, amount := range more.Other {
		result.Other[name] += amount
	}
	return result
}

// Times multiplies every amount.
func (r Resources) Times(n int64) Resources {
	result := Resources{CPU: r.CPU * n, Memory: r.Memory * n, Storage: r.Storage * n, Pods: r.Pods * n}
	if len(r.Other) == 0 {
		return result
	}
	result.Other = make(map[string]int64, len(r.Other))
	for name, amount := range r.Other {
		result.Other[name] = amount * n
	}
	return result
}

// hold counts how many times a request fits; a request for nothing fits any number of times.
func (r *Resources) hold(request *Resources) int64 {
	fits := limited(math.MaxInt64, r.CPU, request.CPU)
	fits = limited(fits, r.Memory, request.Memory)
	fits = limited(fits, r.Storage, request.Storage)
	fits = limited(fits, r.Pods, request.Pods)
	if len(request.Other) == 0 {
		return fits
	}
	for name, wanted := range request.Other {
		fits = limited(fits, r.Other[name], wanted)
	}
	return fits
}

// limited is fits, or how many times what is wanted is free if that is less.
func limited(fits, free, wanted int64) int64 {
	if wanted <= 0 {
		return fits
	}
	return min(fits, max(0, free)/wanted)
}

// IsZero tells whether nothing is asked for.
func (r Resources) IsZero() bool {
	if r.CPU != 0 || r.Memory != 0 || r.Storage != 0 || r.Pods != 0 {
		return false
	}
	for _, amount := range r.Other {
		if amount != 0 {
			return false
		}
	}
	return true
}
