//go:build !race

package kubelet

var raceFlags []string

// floodMemory is the permitted memory in KiB for 10,000 connections.
const floodMemory = 128 << 10
