//go:build !race

package kubelet

var raceFlags []string

// floodMemory is the memory in KiB that 10,000 connections may cost.
const floodMemory = 128 << 10
