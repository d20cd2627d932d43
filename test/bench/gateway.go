package main

import "context"

// The figures of the gateway.
const (
	figureStrangers50     = "gateway attacked by strangers: `/readyz` of another shoot, median"
	figureStrangers99     = "gateway attacked by strangers: `/readyz` of another shoot, p99"
	figureStrangersMemory = "gateway attacked by strangers: memory of the process, peak"
)

// measureGateway measures what strangers take from others at the gateway, a process of its own on a loopback address.
func measureGateway(ctx context.Context) ([]measurement, error) {
	found, err := goBenchmarks(ctx, "./pkg/vpn/gateway", "BenchmarkStrangers", "p50-ms", "p99-ms", "peak-MB")
	if err != nil {
		return nil, err
	}
	how :=
		"`BenchmarkStrangers` of pkg/vpn/gateway, each time with a new connection, while strangers of one address " +
			"each hold 5,000 half-sent " +
			"hellos and 20,000 idle connections to one shoot, replacing up to 500 and 1,000 of them a second, and " +
			"send " +
			"50,000 junk packets a second to the WireGuard " +
			"servers of 1,000 shoots; all on one machine"
	return []measurement{
		{Name: figureStrangers50, Value: found["p50-ms"], Unit: "ms", How: how},
		{Name: figureStrangers99, Value: found["p99-ms"], Unit: "ms", How: "the same"},
		{
			Name: figureStrangersMemory, Value: found["peak-MB"], Unit: "MB",
			How: "the same; resident, without what the kernel holds for sockets. The process that was started " +
				"answers at the end",
		},
	}, nil
}
